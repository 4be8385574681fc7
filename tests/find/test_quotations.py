"""Quotations and operators: they demand among keywords; in a question they are wishes and words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.drivers.runtimes import Caller, opened
from zibaldone.tools.spec import Runtime

HOUNDS = 150
FIRST = "what holds the quotation comes first"
HIGHER = "what holds the quotation is ranked higher"
NOWHERE = "nothing holds the quotation"

Search = Callable[..., tuple[list[str], dict[str, Any]]]


@pytest.fixture(scope="module", params=["none", "hashed"])
def runtime(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runtime]:
    with opened(tmp_path_factory.mktemp("quoted") / "data", embedder=request.param) as runtime:
        ask = Caller(runtime)
        for number in range(HOUNDS):
            words = "Red hounds and the fox sleep after the hunt in the forest"
            ask("upload_document", path=f"hounds/{number:03}", content=f"{words}, {number}.")
        for number in range(2):
            ask("upload_document", path=f"fox/{number}", content=f"A red fox, {number}.")
        for number in range(8):
            content = f"The old den lies under the oak, {number}."
            ask("upload_document", path=f"den/{number}", content=content)
        ask("upload_document", path="grep", content="grep -v prints lines.", title="Manual")
        ask("upload_document", path="verse", content="A verse of many lines.")
        if runtime.index is not None:
            asyncio.run(runtime.index.drain())
        yield runtime


def _knowledge(ask: Caller, query: str, limit: int) -> tuple[list[str], dict[str, Any]]:
    answer = ask("search_knowledge", query=query, limit=limit)
    return [hit["document_id"] for hit in answer["results"]], answer


def _rag(tool: str, **more: Any) -> Callable[[Caller, str, int], tuple[list[str], dict[str, Any]]]:
    def search(ask: Caller, query: str, limit: int) -> tuple[list[str], dict[str, Any]]:
        answer = ask(tool, query=query, k=limit, **more)
        return [hit["doc_id"] for hit in answer["results"]], answer

    return search


SEARCHES = {
    "search_knowledge": _knowledge,
    "rag.search_fts": _rag("rag.search_fts"),
    **{
        f"rag.search_hybrid {mode}": _rag("rag.search_hybrid", mode=mode)
        for mode in ("fuse", "convex", "fts_then_vec")
    },
}


@pytest.fixture(params=SEARCHES)
def search(runtime: Runtime, request: pytest.FixtureRequest) -> Search:
    ask = Caller(runtime)

    def run(query: str, limit: int = 10) -> tuple[list[str], dict[str, Any]]:
        return SEARCHES[request.param](ask, query, limit)

    return run


LONG = "Where do the hounds sleep after the hunt in the forest, and where is the {}?"


class TestInASentence:
    def test_what_holds_the_quotation_comes_first_and_the_rest_follows(
        self, search: Search
    ) -> None:
        ids, answer = search(LONG.format('"red fox"'))
        assert {*ids[:2]} == {"fox/0", "fox/1"}
        assert len(ids) == 10
        assert all(name.startswith("hounds/") for name in ids[2:])
        assert FIRST in answer["note"]

    def test_scores_never_rise(self, search: Search) -> None:
        _, answer = search(LONG.format('"red fox"'))
        scores = [hit.get("score", hit.get("score_fts")) for hit in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in scores)

    def test_what_many_hold_is_ranked_higher(self, search: Search) -> None:
        ids, answer = search(LONG.format('"old den"'), limit=50)
        assert any(name.startswith("hounds/") for name in ids)
        assert HIGHER in answer["note"]

    def test_what_nothing_holds_empties_no_answer(self, search: Search) -> None:
        ids, answer = search(LONG.format('"blue fox"'))
        assert len(ids) == 10
        assert NOWHERE in answer["note"]

    def test_pages_fit_together(self, runtime: Runtime) -> None:
        ask, query = Caller(runtime), LONG.format('"red fox"')
        whole = ask("rag.search_fts", query=query, k=30)["results"]
        pages = [
            hit
            for offset in range(0, 30, 10)
            for hit in ask("rag.search_fts", query=query, k=10, offset=offset)["results"]
        ]
        assert pages == whole

    def test_a_plus_demands(self, search: Search) -> None:
        ids, answer = search(LONG.format('+"red fox"'))
        assert {*ids} == {"fox/0", "fox/1"}
        assert "quotation" not in answer.get("note", "")

    def test_operators_are_words(self, search: Search) -> None:
        ids, answer = search("What does grep -v do with the lines of a verse?", limit=50)
        assert "grep" in ids
        assert "-v was read as words" in answer["note"]

    def test_operators_with_quotes_are_meant(self, search: Search) -> None:
        ids, _ = search('What does grep do with the lines of a -"verse"?', limit=50)
        assert "grep" in ids
        assert "verse" not in ids
        ids, _ = search('What does grep do with the lines title:"manual"?')
        assert {*ids} == {"grep"}


class TestKeywords:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ('"red fox"', {"fox/0", "fox/1"}),
            ('"red fox" -0', {"fox/1"}),
            ('+"red fox" hounds', {"fox/0", "fox/1"}),
            ("lines -verse", {"grep"}),
            ("title:manual lines", {"grep"}),
            ("vers*", {"verse"}),
        ],
    )
    def test_demand(self, search: Search, query: str, expected: set[str]) -> None:
        ids, _ = search(query, limit=50)
        if query == "lines -verse":  # what is near in meaning is found, too
            assert "verse" not in ids
            assert expected <= {*ids}
        else:
            assert {*ids} == expected

    def test_a_quotation_beside_keywords_is_a_wish(self, search: Search) -> None:
        ids, answer = search('hounds "red fox"')
        assert {*ids[:2]} == {"fox/0", "fox/1"}
        assert len(ids) == 10
        assert FIRST in answer["note"]

    def test_demands_and_wishes_go_together(self, search: Search) -> None:
        ids, answer = search('+"red fox" about "fox 1"')
        assert ids[0] == "fox/1"
        assert {*ids} == {"fox/0", "fox/1"}
        assert FIRST in answer["note"]


def test_a_quoted_word_costs_little_more(search: Search) -> None:
    plain = (LONG.format("fox") + " " + " ".join(f"word{n}" for n in range(50)))[:900]
    quoted = plain.replace("hounds", '"hounds"')

    def cpu_seconds(query: str) -> float:
        started_s = time.process_time()
        for _ in range(5):
            search(query)
        return time.process_time() - started_s

    search(plain)  # its vector is known now, and so is that of the other
    best_plain = min(cpu_seconds(plain) for _ in range(3))
    best_quoted = min(cpu_seconds(quoted) for _ in range(3))
    assert best_quoted < 4 * best_plain

"""search_knowledge with a reranker: it decides the order of the best hits, and is never needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rerank_server import RerankServer
from tests.drivers.runtimes import Caller, opened
from tests.drivers.server import Server
from zibaldone.limits import RERANK_FAILURES_MAX, RERANK_TEXT_CHARS_MAX

QUESTION = "where do foxes sleep"
DOCUMENTS = 6
FAVOURITE = "a/3"


@pytest.fixture
def reranker(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with RerankServer() as running:
        yield running


@pytest.fixture
def ask(data: Path, reranker: RerankServer) -> Iterator[Caller]:
    flags = {"rerank_seconds_max": "30", "rerank_candidates_max": "5"}
    with opened(data, reranker=reranker.url, **flags) as runtime:
        yield filled(Caller(runtime))


def filled(ask: Caller) -> Caller:
    for number in range(DOCUMENTS):
        more = "This one is my favourite." if f"a/{number}" == FAVOURITE else ""
        content = f"Foxes sleep in dens, says number{number}. {'sleep ' * number}{more}"
        ask("upload_document", path=f"a/{number}", title=f"Fox {number}", content=content)
    return ask


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["document_id"] for hit in answer["results"]]


def test_the_reranker_decides_the_order(ask: Caller, reranker: RerankServer) -> None:
    answer = ask("search_knowledge", query=QUESTION)
    assert ids(answer)[0] == FAVOURITE
    assert sorted(ids(answer)) == [f"a/{number}" for number in range(DOCUMENTS)]
    assert answer["left_out"] == ["vectors"]
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 0.9
    (asked,) = reranker.asked
    assert asked.body["query"] == QUESTION
    assert len(asked.texts) == 5
    assert all(text.startswith("Fox ") and "Foxes sleep" in text for text in asked.texts)


def test_it_looks_further_than_what_is_shown(ask: Caller) -> None:
    answer = ask("search_knowledge", query=QUESTION, limit=1)
    assert ids(answer) == [FAVOURITE]
    assert not answer["truncated"]


def test_what_it_is_sent_is_bounded(ask: Caller, reranker: RerankServer) -> None:
    ask("upload_document", path="long", content="foxes " + "sleep well " * 5_000)
    ask("search_knowledge", query=QUESTION + " soundly" * 500)
    (asked,) = reranker.asked
    assert all(len(text) <= RERANK_TEXT_CHARS_MAX for text in asked.texts)
    assert len(asked.body["query"]) <= RERANK_TEXT_CHARS_MAX


def test_it_reads_the_best_passage_below_its_title_and_heading(
    ask: Caller, reranker: RerankServer
) -> None:
    filler = "Nothing of note happened in the harbour that morning. " * 20
    content = f"## Harbour\n\nFoxes. {filler}\n\n## Dens\n\nFoxes sleep where foxes do. {filler}"
    for path, title in (("long/a", "Animals"), ("long/b", "Birds")):
        ask("upload_document", path=path, title=title, content=content)
    ask("search_knowledge", query=QUESTION, prefix="long/")
    (asked,) = reranker.asked
    (text,) = (text for text in asked.texts if text.startswith("Animals"))
    assert text.startswith("Animals\nDens\n")
    assert "Foxes sleep where foxes do" in text


def test_what_holds_a_quotation_stays_first(ask: Caller, reranker: RerankServer) -> None:
    answer = ask("search_knowledge", query='where do foxes sleep "says number1"')
    assert ids(answer)[0] == "a/1"
    assert reranker.asked == []


def test_one_hit_is_not_sent(ask: Caller, reranker: RerankServer) -> None:
    assert ids(ask("search_knowledge", query="favourite")) == [FAVOURITE]
    assert reranker.asked == []


@pytest.mark.parametrize("fault", ["late", "error", "shape", "count", "number", "gone"])
def test_without_its_answer_the_search_goes_on(
    data: Path, fault: str, reranker: RerankServer
) -> None:
    url = reranker.url
    if fault == "late":
        reranker.hold.clear()
    elif fault == "gone":
        with RerankServer() as gone:
            url = gone.url
    bad = {
        "error": (500, b"no"),
        "shape": (200, b'{"scores": [1, 2]}'),
        "count": (200, b'[{"index": 0, "score": 1}]'),
        "number": (200, b'[{"index": 0, "score": NaN}]'),
    }
    reranker.answer = lambda asked: bad.get(fault)
    with opened(data, reranker=url, rerank_seconds_max="0.3") as runtime:
        ask = filled(Caller(runtime))
        answer = ask("search_knowledge", query=QUESTION)
    with opened(data) as runtime:
        plain = Caller(runtime)("search_knowledge", query=QUESTION)
    assert ids(answer) == ids(plain)
    assert answer["left_out"] == ["vectors", "reranker"]
    assert "the order is that of the search alone" in answer["note"]


def test_after_several_failures_it_is_left_alone_for_a_while(
    ask: Caller, reranker: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker.answer = lambda asked: (503, b"")
    for _ in range(RERANK_FAILURES_MAX + 2):
        answer = ask("search_knowledge", query=QUESTION)
        assert answer["left_out"] == ["vectors", "reranker"]
    assert len(reranker.asked) == RERANK_FAILURES_MAX
    assert "tried again soon" in answer["note"]
    later_s = time.monotonic() + 60
    monkeypatch.setattr("zibaldone.find.rerank.time.monotonic", lambda: later_s)
    reranker.answer = lambda asked: None
    assert ids(ask("search_knowledge", query=QUESTION))[0] == FAVOURITE


def test_a_server_takes_it_by_an_option_and_its_key_from_the_environment(
    tmp_path: Path, reranker: RerankServer
) -> None:
    reranker.dialect = "cohere"
    environment = {
        "ZIBALDONE_EMBEDDER": "none",
        "ZIBALDONE_RERANKER_MODEL": "a-model",
        "ZIBALDONE_RERANKER_API_KEY": "sk-secret",
        "NO_PROXY": "127.0.0.1",
    }
    arguments = ("--reranker", reranker.url)
    with Server(tmp_path / "data", arguments=arguments, environment=environment) as server:
        server.create("a", "Foxes sleep in dens, and foxes sleep at night.")
        server.create("b", "Foxes sleep; this is my favourite.")
        answer = Mcp(server.client).call("search_knowledge", query=QUESTION)
        assert ids(answer) == ["b", "a"]
        (asked,) = reranker.asked
        assert asked.headers["authorization"] == "Bearer sk-secret"
        assert asked.body["model"] == "a-model"
        assert "sk-secret" not in server.log()

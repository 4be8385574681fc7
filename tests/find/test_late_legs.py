"""A part of a search that takes too long: the others answer, and the answer names it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.endless import make_endless
from tests.drivers.runtimes import Caller, opened
from zibaldone.limits import QUERY_TERMS_MAX
from zibaldone.tools.spec import Runtime

HYBRID = [("rag.search_hybrid", {"mode": mode}) for mode in ("fuse", "convex")]
BOTH_LEGS: list[tuple[str, dict[str, Any]]] = [("search_knowledge", {}), *HYBRID]
RERANK = ("rag.search_hybrid", {"mode": "fts_then_vec"})
BY_WORDS = ("rag.search_fts", dict[str, Any]())


@pytest.fixture
def runtime(data: Path) -> Iterator[Runtime]:
    with opened(data, embedder="hashed", query_seconds_max=1) as runtime:
        ask = Caller(runtime)
        for number in range(5):
            ask("upload_document", path=f"a/{number}", content=f"The red fox sleeps, {number}.")
        assert runtime.index is not None
        asyncio.run(runtime.index.drain())
        yield runtime


@pytest.fixture
def ask(runtime: Runtime) -> Caller:
    return Caller(runtime)


@pytest.mark.parametrize(("tool", "more"), BOTH_LEGS)
def test_without_keywords_what_is_near_in_meaning_is_found(
    ask: Caller, data: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    make_endless(monkeypatch, data, "lexical", "search")
    answer = ask(tool, query="red fox", **more)
    assert len(answer["results"]) == 5
    assert answer["left_out"] == ["keywords"]
    assert "The keyword search took too long: found by meaning only" in answer["note"]


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize(("tool", "more"), [*BOTH_LEGS, RERANK])
def test_without_vectors_keywords_remain(
    ask: Caller,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    more: dict[str, Any],
    quoted: bool,
) -> None:
    make_endless(monkeypatch, data, "vectors", "scores")
    query = 'where is the "red fox" asleep' if quoted else "red fox"
    answer = ask(tool, query=query, **more)
    assert len(answer["results"]) == 5
    assert answer["left_out"] == ["vectors"]
    assert "The vector search took too long: keywords only" in answer["note"]


@pytest.mark.parametrize(("tool", "more"), [*BOTH_LEGS, RERANK, BY_WORDS])
def test_without_quotations_their_words_remain(
    ask: Caller, data: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    make_endless(monkeypatch, data, "lexical", "matching")
    answer = ask(tool, query='where is the "red fox" asleep', **more)
    assert len(answer["results"]) == 5
    assert answer["left_out"] == ["quotations"]
    assert "Quotations could not be looked for in time" in answer["note"]


@pytest.mark.parametrize(("tool", "more"), BOTH_LEGS)
def test_quotations_in_what_is_near_that_are_not_looked_for_in_time_are_named(
    ask: Caller, data: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    make_endless(monkeypatch, data, "lexical", "matching", from_call=2)
    answer = ask(tool, query='where is the "red fox" asleep', **more)
    assert len(answer["results"]) == 5
    assert answer["left_out"] == ["quotations"]


@pytest.mark.parametrize(("tool", "more"), [*BOTH_LEGS, BY_WORDS])
def test_where_rare_words_cannot_be_told_the_first_ones_of_a_long_question_count(
    ask: Caller, data: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    make_endless(monkeypatch, data, "lexical", "chunk_counts")
    rest = " ".join(f"w{number}" for number in range(QUERY_TERMS_MAX + 5))
    answer = ask(tool, query=f"red fox {rest}", **more)
    assert len(answer["results"]) == 5
    assert "left_out" not in answer


@pytest.mark.parametrize(("tool", "more"), BOTH_LEGS)
def test_where_both_are_late_there_is_no_answer(
    ask: Caller, data: Path, monkeypatch: pytest.MonkeyPatch, tool: str, more: dict[str, Any]
) -> None:
    make_endless(monkeypatch, data, "lexical", "search")
    make_endless(monkeypatch, data, "vectors", "search")
    assert ask.refused(tool, query="red fox", **more) == "DEADLINE_EXCEEDED"


def test_a_search_in_time_leaves_nothing_out(ask: Caller) -> None:
    for tool, more in (*BOTH_LEGS, RERANK, BY_WORDS):
        assert "left_out" not in ask(tool, query="red fox", **more)


def test_without_a_model_vectors_are_left_out(data: Path) -> None:
    with opened(data) as runtime:
        ask = Caller(runtime)
        ask("upload_document", path="a", content="The red fox")
        assert ask("search_knowledge", query="fox")["left_out"] == ["vectors"]

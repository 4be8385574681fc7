"""Questions that cost more than they should, on a store of some size."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.drivers.mcp import BOTH, JSON, SSE, Mcp
from tests.drivers.rag import HASHED, rag, wait_until_indexed
from tests.drivers.server import Server
from tests.hostile.peers import Bystander

DOCUMENTS = 1_460
WORDS = [
    f"{first}{second}" for first in ("am", "ba", "ce", "de", "fo") for second in "abcdefghijkl"
]
QUESTION = " ".join(f"What of {word} and" for word in WORDS)[:890] + " everywhere?"
QUOTED = QUESTION.replace("everywhere", '"everywhere"')
"""Every fifth document has the word, and each some of the others."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("queries") / "data", environment=HASHED) as running:

        def create(number: int) -> None:
            some = " ".join(WORDS[number % 13 :: 7])
            where = "everywhere" if number % 5 == 0 else "somewhere"
            running.create(f"d/{number}", f"It is {where}: {some} {number}.")

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(create, range(DOCUMENTS)))
        wait_until_indexed(running)
        yield running


@pytest.mark.parametrize("mode", ["fuse", "convex", "fts_then_vec"])
def test_a_quoted_word_in_a_long_question_is_answered(server: Server, mode: str) -> None:
    with Bystander(server) as bystander:
        plain = rag(server).call("rag.search_hybrid", query=QUESTION, mode=mode)
        quoted = rag(server).call("rag.search_hybrid", query=QUOTED, mode=mode)
        bystander.wait_for_a_round()
    assert len(plain["results"]) == len(quoted["results"]) == 10
    assert "left_out" not in quoted


@pytest.mark.parametrize("accept", [JSON, SSE, BOTH])
def test_it_is_answered_by_search_knowledge(server: Server, accept: str) -> None:
    tools = Mcp(server.client, headers={"accept": accept})
    with Bystander(server) as bystander:
        answer = tools.call("search_knowledge", query=QUOTED)
        bystander.wait_for_a_round()
    assert len(answer["results"]) == 10
    assert "left_out" not in answer

"""Searches where many want the same place: long documents, refused passages, callers at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED, embedding_server, rag, wait_until_indexed
from tests.drivers.server import Server

NOTES = [f"small/{number}" for number in range(6)]
CALLERS = 30


def passages(count: int, words: str) -> str:
    """A document of as many passages, each of which holds these words."""
    return "\n\n".join(
        f"# Part {part}\n\n{words} " + " ".join(f"p{part}w{n}" for n in range(100))
        for part in range(count)
    )


@pytest.fixture(scope="module", params=["none", "hashed"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    environment = {"ZIBALDONE_EMBEDDER": request.param}
    with Server(tmp_path_factory.mktemp("crowd") / "data", environment=environment) as running:
        running.create("big/log", passages(250, "alpha alpha alpha"))
        for path in NOTES:
            running.create(path, f"A note that mentions alpha once. {path}")
        for number in range(5):
            running.create(f"beta/{number}", passages(130, "beta beta"))
        for path in NOTES:
            running.create(f"beta/{path}", f"A note that mentions beta once. {path}")
        if request.param != "none":
            wait_until_indexed(running)
        yield running


def test_a_long_document_does_not_hide_the_others(server: Server) -> None:
    answer = Mcp(server.client).call("search_knowledge", query="alpha", limit=20)
    found = [hit["document_id"] for hit in answer["results"]]
    assert {"big/log", *NOTES} <= {*found}
    assert len(found) == len({*found})


def test_where_too_many_long_documents_crowd_it_says_that_there_is_more(server: Server) -> None:
    tools = Mcp(server.client)
    answer = tools.call("search_knowledge", query='"beta"', limit=50)
    found = {hit["document_id"] for hit in answer["results"]}
    every = {f"beta/{number}" for number in range(5)} | {f"beta/{path}" for path in NOTES}
    assert found <= every
    assert answer["truncated"] == (found != every)
    if "note" in answer:  # by keywords alone, and there the long ones come one after the other
        assert answer["truncated"]
    few = tools.call("search_knowledge", query='"beta"', prefix="beta/small/", limit=50)
    assert {hit["document_id"] for hit in few["results"]} == {f"beta/{path}" for path in NOTES}
    assert not few["truncated"]


@pytest.fixture(scope="module")
def fruit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    with Server(tmp_path_factory.mktemp("fruit") / "data", environment=HASHED) as running:
        for number in range(120):
            running.create(f"zoo/{number}", f"pear apple plum cherry zebra {number}")
        for number in range(6):
            running.create(f"orchard/{number}", f"pear apple plum cherry and some more {number}")
        running.create("server/setup", "Configuring the server takes an hour.")
        running.create("server/reboot", "The server is started again at night.")
        wait_until_indexed(running)
        yield rag(running)


def test_passages_a_query_refuses_leave_their_places_to_others(fruit: Mcp) -> None:
    answer = fruit.call("rag.search_hybrid", query="pear apple plum cherry -zebra", k=50)
    near = [hit["doc_id"] for hit in answer["results"] if hit["debug"]["rank_vec"] is not None]
    assert {f"orchard/{number}" for number in range(6)} <= {*near}
    assert not any(name.startswith("zoo/") for name in near)


def test_the_beginning_of_a_word_is_a_wish_on_both_legs(fruit: Mcp) -> None:
    answer = fruit.call("rag.search_hybrid", query="configur* server", k=50)
    ranks = {hit["doc_id"]: hit["debug"] for hit in answer["results"]}
    for name in ("server/setup", "server/reboot"):
        assert ranks[name]["rank_fts"] is not None
        assert ranks[name]["rank_vec"] is not None
    assert len(ranks) > 2, "meaning is not held to the letters"
    alone = fruit.call("rag.search_hybrid", query="configur*", k=50)
    assert [hit["doc_id"] for hit in alone["results"]] == ["server/setup"]


def test_words_that_were_left_out_are_owned_up_to(fruit: Mcp) -> None:
    many = " ".join(f"word{number}" for number in range(100))
    for tool in ("rag.search_fts", "rag.search_hybrid"):
        assert "36 words of the query were left out" in fruit.call(tool, query=many)["note"]
    refused = " ".join(f"-no{number}" for number in range(80))
    answer = fruit.call("rag.search_hybrid", query=f"plum {refused}")
    assert answer["results"], "what is wanted has its place beside what is not"
    assert "were left out" in answer["note"]


def test_what_is_relevant_enough_does_not_depend_on_a_model_that_is_not_there(
    server: Server,
) -> None:
    answer = rag(server).call(
        "rag.search_hybrid", query="alpha", k=10, filters={"min_relevance": 0.6}
    )
    assert answer["results"]


def test_many_questions_at_once_wait_their_turn(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        embedding_server() as stub,
        Server(tmp_path_factory.mktemp("turn") / "data", environment=stub.environment) as running,
        ThreadPoolExecutor(CALLERS) as callers,
    ):
        running.create("a", "Some text about a quartz clock.")
        wait_until_indexed(running)
        before = len(stub.texts)
        stub.flowing.clear()
        asked = [
            callers.submit(rag(running).call, "rag.search_vector", query_text=f"quartz {number}")
            for number in range(CALLERS)
        ]
        until_s = time.monotonic() + 5
        while len(stub.texts) == before and time.monotonic() < until_s:
            time.sleep(0.01)
        stub.flowing.set()
        answers = [one.result() for one in asked]
    assert all(len(answer["results"]) == 1 for answer in answers)

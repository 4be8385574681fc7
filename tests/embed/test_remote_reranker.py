"""A reranker is asked in its dialect; every good answer is read, every bad one is told."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.rerank_server import RerankServer, ServerDialect
from zibaldone.embed.remote_reranker import (
    Dialect,
    RemoteReranker,
    RerankerSettings,
    open_reranker,
)
from zibaldone.errors import ConfigurationError, RerankerUnavailable
from zibaldone.limits import RERANK_ANSWER_BYTES_MAX

SECRET = "sk-very-secret"
TEXTS = ["one", "my favourite", "three"]
EXPECTED = [0.1, 0.9, 0.1]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with RerankServer() as running:
        yield running


def ask(reranker: RemoteReranker, times: int = 1) -> list[float]:
    async def scores() -> list[float]:
        for _ in range(times - 1):
            await reranker.scores("which", TEXTS)
        return await reranker.scores("which", TEXTS)

    return asyncio.run(scores())


@pytest.mark.parametrize(
    ("spoken", "dialect", "model"),
    [
        ("tei", "tei", ""),
        ("tei", "auto", ""),
        ("tei", "auto", "a-name"),
        ("cohere", "cohere", "a-name"),
        ("cohere", "auto", "a-name"),
        ("cohere", "auto", ""),
    ],
)
def test_a_server_is_asked_as_it_wants_to_be(
    server: RerankServer, spoken: ServerDialect, dialect: Dialect, model: str
) -> None:
    server.dialect = spoken
    reranker = RemoteReranker(
        RerankerSettings(server.url, model=model, dialect=dialect, api_key=SECRET)
    )
    assert ask(reranker, times=2) == EXPECTED
    last = server.asked[-1]
    assert last.path == "/rerank"
    assert last.headers["authorization"] == f"Bearer {SECRET}"
    wanted: dict[str, Any] = {"query": "which"}
    if spoken == "tei":
        wanted |= {"texts": TEXTS, "truncate": True}
    else:
        wanted |= {"documents": TEXTS, "top_n": 3} | ({"model": model} if model else {})
    assert last.body == wanted
    # What was found out is not tried again.
    assert len(server.asked) == (2 if dialect != "auto" or bool(model) == (spoken != "tei") else 3)


@pytest.mark.parametrize(
    ("given", "path"), [("/v1/rerank", "/v1/rerank"), ("/v2/", "/v2/rerank"), ("", "/rerank")]
)
def test_the_path_is_completed(server: RerankServer, given: str, path: str) -> None:
    assert ask(RemoteReranker(RerankerSettings(server.url + given))) == EXPECTED
    assert server.asked[0].path == path


def test_scores_of_any_scale_are_read(server: RerankServer) -> None:
    server.answer = lambda asked: (200, server.entries([-3.5, 7, 0]))
    assert ask(RemoteReranker(RerankerSettings(server.url))) == [-3.5, 7.0, 0.0]
    data = {"data": [{"index": place, "relevance_score": 0.5} for place in range(3)]}
    server.answer = lambda asked: (200, json.dumps(data).encode())
    assert ask(RemoteReranker(RerankerSettings(server.url))) == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (401, b"{}"),
        (422, b"{}"),
        (302, b""),
        (200, b""),
        (200, b"<html>"),
        (200, b"7"),
        (200, b"{}"),
        (200, b'{"results": 3}'),
        (200, b'["one"]'),
        (200, b'[{"index": 0}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 0, "score": 1}, {"index": 1, "score": 1}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": 3, "score": 1}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": 2, "score": NaN}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": 2, "score": "1"}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": 2, "score": null}]'),
        (200, b'[{"index": 0, "score": 1}, {"index": 1, "score": 1}, {"index": true, "score": 1}]'),
        (200, b" " * (RERANK_ANSWER_BYTES_MAX + 1)),
    ],
)
def test_a_bad_answer_is_told(server: RerankServer, status: int, body: bytes) -> None:
    server.answer = lambda asked: (status, body)
    with pytest.raises(RerankerUnavailable) as caught:
        ask(RemoteReranker(RerankerSettings(server.url, api_key=SECRET)))
    assert SECRET not in caught.value.message


def test_a_server_that_was_busy_when_first_asked_is_understood_later(server: RerankServer) -> None:
    """Its refusal says nothing of its dialect."""
    server.dialect = "cohere"
    reranker = RemoteReranker(RerankerSettings(server.url))
    server.answer = lambda asked: (503, b"")
    with pytest.raises(RerankerUnavailable):
        ask(reranker)
    server.answer = lambda asked: None
    assert len(ask(reranker)) == len(TEXTS)


def test_a_packed_answer_is_not_unpacked(server: RerankServer) -> None:
    server.answer = lambda asked: (200, gzip.compress(server.well(asked)[1]))
    server.headers = {"content-encoding": "gzip"}
    with pytest.raises(RerankerUnavailable, match="cannot be read"):
        ask(RemoteReranker(RerankerSettings(server.url)))
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_a_server_that_is_not_there_is_told(server: RerankServer) -> None:
    with RerankServer() as gone:
        url = gone.url
    with pytest.raises(RerankerUnavailable, match="ConnectError"):
        ask(RemoteReranker(RerankerSettings(url)))


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host/rerank", "http://"])
def test_a_url_has_to_be_one(url: str) -> None:
    with pytest.raises(ConfigurationError, match="http"):
        RemoteReranker(RerankerSettings(url))


def test_without_a_url_there_is_none() -> None:
    assert open_reranker(RerankerSettings()) is None

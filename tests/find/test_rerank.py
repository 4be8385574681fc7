"""The reranker is shared by key: what one key asks of it costs no other its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.drivers.rerank_server import RerankServer
from zibaldone.access.share import SHARE
from zibaldone.embed.remote_reranker import RemoteReranker, RerankerSettings
from zibaldone.find import rerank
from zibaldone.find.rerank import Reranking
from zibaldone.limits import RERANK_FAILURES_MAX, RERANK_REQUESTS_MAX

TEXTS = ("one", "my favourite")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with RerankServer() as running:
        yield running


def reranking(server: RerankServer) -> Reranking:
    reranker = RemoteReranker(RerankerSettings(server.url))
    return Reranking(reranker, seconds_max=30.0, candidates_max=30)


async def scores(
    asked: Reranking, share: str, question: str = "which", texts: Sequence[str] = TEXTS
) -> list[float] | str:
    SHARE.set(share)
    return await asked._scores(question, texts)


async def until(is_so: Callable[[], bool]) -> None:
    """The server is in threads of its own."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_crowd_of_one_key_leaves_room_for_another(server: RerankServer) -> None:
    server.hold.clear()

    async def run() -> None:
        asked = reranking(server)
        crowd = [asyncio.create_task(scores(asked, "a")) for _ in range(4 * RERANK_REQUESTS_MAX)]
        await until(lambda: len(server.asked) >= RERANK_REQUESTS_MAX)
        another = asyncio.create_task(scores(asked, "b", "mine"))
        await until(lambda: server.asked[-1].body["query"] == "mine")
        assert len(server.asked) == RERANK_REQUESTS_MAX + 1
        server.hold.set()
        assert await another == [0.1, 0.9]
        assert await asyncio.gather(*crowd) == [[0.1, 0.9]] * len(crowd)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_what_fails_for_one_key_is_still_tried_for_another(server: RerankServer) -> None:
    server.answer = lambda asked: (500, b"") if asked.body["query"] == "poison" else None

    async def run() -> None:
        asked = reranking(server)
        for _ in range(RERANK_FAILURES_MAX):
            assert isinstance(await scores(asked, "a", "poison"), str)
        assert await scores(asked, "a") == rerank.PAUSED
        assert await scores(asked, "b") == [0.1, 0.9]

    asyncio.run(run())

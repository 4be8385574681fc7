"""Vectors of queries: what a model that hangs holds up, and what it does not."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.drivers.embedders import PATIENCE_SECONDS, Counting
from zibaldone.access.share import SHARE
from zibaldone.embed.port import Vectors
from zibaldone.find.query_vector import FAILED, SLOW, QueryVector, QueryVectors
from zibaldone.limits import (
    QUERY_EMBEDS_MAX,
    QUERY_EMBEDS_PER_KEY_MAX,
    QUERY_EMBEDS_WAITING_MAX,
    Limits,
)


class Hanging(Counting):
    """Answers nothing until it may; says how many it is asked for at once."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()
        self.running = self.running_max = 0
        self._lock = threading.Lock()

    def wait_for(self, running: int) -> None:
        end_s = time.monotonic() + PATIENCE_SECONDS
        while self.running < running:
            assert time.monotonic() < end_s
            time.sleep(0.01)

    def embed(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self.running += 1
            self.running_max = max(self.running_max, self.running)
        try:
            assert self.may_go_on.wait(PATIENCE_SECONDS)
            with self._lock:
                return super().embed(texts)
        finally:
            with self._lock:
                self.running -= 1


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    embedder = Hanging()
    yield embedder
    embedder.may_go_on.set()


async def asked(vectors: QueryVectors, *texts: str, seconds_max: float) -> list[QueryVector]:
    return list(await asyncio.gather(*(vectors.of(text, seconds_max) for text in texts)))


def test_a_model_that_hangs_keeps_a_bounded_number_of_queries(hanging: Hanging) -> None:
    texts = [f"query {number}" for number in range(1_000)]

    async def run() -> None:
        vectors = QueryVectors(hanging)
        waiting = asyncio.create_task(asked(vectors, *texts[:800], seconds_max=PATIENCE_SECONDS))
        await asyncio.sleep(0.2)
        # There is no room: told at once, though these could wait.
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            late = await asked(vectors, *texts[800:], seconds_max=PATIENCE_SECONDS)
        assert {(one.vector is None, one.reason) for one in late} == {(True, SLOW)}
        threads = [one for one in threading.enumerate() if one.name == "zibaldone-query-vector"]
        assert len(threads) <= QUERY_EMBEDS_MAX
        hanging.may_go_on.set()
        answers = await waiting
        served = [one for one in answers if one.vector is not None]
        assert QUERY_EMBEDS_MAX < len(served) <= QUERY_EMBEDS_MAX + QUERY_EMBEDS_WAITING_MAX
        assert len(hanging.texts) == len(served)
        assert all(one.reason == SLOW for one in answers if one.vector is None)
        # What did not fit has left nothing behind.
        (again,) = await asked(vectors, texts[-1], seconds_max=PATIENCE_SECONDS)
        assert again.vector is not None

    asyncio.run(run())
    assert hanging.running_max <= QUERY_EMBEDS_MAX


def test_the_bounds_are_small() -> None:
    """A thread each, and no more waiting than the gate lets in."""
    assert QUERY_EMBEDS_MAX <= 16
    assert Limits().requests_max >= QUERY_EMBEDS_WAITING_MAX


def test_a_key_that_waits_for_nothing_finds_room(hanging: Hanging) -> None:
    """Others may have taken all of it."""

    async def run() -> None:
        vectors = QueryVectors(hanging)
        texts = [f"query {number}" for number in range(QUERY_EMBEDS_MAX + QUERY_EMBEDS_WAITING_MAX)]
        others = asyncio.create_task(asked(vectors, *texts, seconds_max=PATIENCE_SECONDS))
        await asyncio.to_thread(hanging.wait_for, 1)
        (refused,) = await asked(vectors, "one more", seconds_max=PATIENCE_SECONDS)
        assert refused.reason == SLOW
        SHARE.set("another")
        own = asyncio.create_task(vectors.of("own", PATIENCE_SECONDS))
        await asyncio.sleep(0)
        hanging.may_go_on.set()
        assert (await own).vector is not None
        await others

    asyncio.run(run())


def test_the_same_query_waits_once(hanging: Hanging) -> None:
    async def run() -> None:
        vectors = QueryVectors(hanging)
        first = await asked(vectors, *["same"] * 500, seconds_max=0.05)
        assert {one.reason for one in first} == {SLOW}
        hanging.may_go_on.set()
        second = await asked(vectors, *["same"] * 500, seconds_max=PATIENCE_SECONDS)
        assert all(one.vector is not None for one in second)

    asyncio.run(run())
    assert hanging.texts == ["same"]


def test_a_caller_that_gave_up_leaves_the_vector_to_the_next(hanging: Hanging) -> None:
    async def run() -> None:
        vectors = QueryVectors(hanging)
        asking = asyncio.create_task(vectors.of("given up", PATIENCE_SECONDS))
        await asyncio.sleep(0.05)
        asking.cancel()
        hanging.may_go_on.set()
        found = await vectors.of("given up", PATIENCE_SECONDS)
        assert found.vector is not None

    asyncio.run(run())
    assert hanging.texts == ["given up"]


async def asked_by(share: str, vectors: QueryVectors, text: str, seconds_max: float) -> QueryVector:
    SHARE.set(share)
    return await vectors.of(text, seconds_max)


def test_one_key_with_many_queries_leaves_others_theirs(hanging: Hanging) -> None:
    """They are embedded in turn, and what nobody waits for any more is not."""

    async def run() -> None:
        vectors = QueryVectors(hanging)
        for number in range(5):  # each time it gives up, and asks for something else
            await asyncio.gather(
                *(asked_by("a", vectors, f"{number} {each}", 0.02) for each in range(64))
            )
        flood = [
            asyncio.create_task(asked_by("a", vectors, f"late {each}", PATIENCE_SECONDS))
            for each in range(64)
        ]
        await asyncio.sleep(0.02)
        theirs = asyncio.create_task(asked_by("b", vectors, "theirs", PATIENCE_SECONDS))
        await asyncio.to_thread(hanging.wait_for, QUERY_EMBEDS_PER_KEY_MAX + 1)
        hanging.may_go_on.set()
        assert (await theirs).vector is not None
        assert all(one.vector is not None for one in await asyncio.gather(*flood))

    asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_SECONDS))
    given_up = [text for text in hanging.texts if text[0].isdigit()]
    assert len(given_up) <= QUERY_EMBEDS_PER_KEY_MAX


def test_what_others_asked_for_is_neither_known_nor_waited_for(hanging: Hanging) -> None:
    """Else the time of an answer would tell what they search for, and a share with a long queue
    could hold up the queries it guesses."""

    async def run() -> None:
        vectors = QueryVectors(hanging)
        flood = [
            asyncio.create_task(asked_by("a", vectors, f"{each}", PATIENCE_SECONDS))
            for each in range(64)
        ]
        await asyncio.sleep(0.02)
        theirs = asyncio.create_task(asked_by("b", vectors, "63", PATIENCE_SECONDS))
        await asyncio.to_thread(hanging.wait_for, QUERY_EMBEDS_PER_KEY_MAX + 1)
        hanging.may_go_on.set()
        assert (await theirs).vector is not None
        await asyncio.gather(*flood)
        assert (await asked_by("b", vectors, "0", PATIENCE_SECONDS)).vector is not None

    asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_SECONDS))
    assert (hanging.texts.count("63"), hanging.texts.count("0")) == (2, 2)


def test_a_thread_that_cannot_be_started_costs_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = QueryVectors(Counting())

    def start_no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start_no_more)
            for _ in range(QUERY_EMBEDS_MAX):
                assert (await vectors.of("text", PATIENCE_SECONDS)).reason == FAILED
        assert (await vectors.of("text", PATIENCE_SECONDS)).vector is not None

    asyncio.run(run())

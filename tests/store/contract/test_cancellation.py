"""A write whose caller gives up: it never happens, or the caller is told what became of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.store.contract.test_fairness import SHARES_ENOUGH
from tests.store.kept import ACTOR, EVERYTHING, Kept
from zibaldone.access.share import SHARE
from zibaldone.errors import DeadlineExceeded, NotFound
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.delete import delete
from zibaldone.model.document import Document
from zibaldone.store.port import Writer


class Held:
    """A write that has begun and goes on when it is released."""

    def __init__(self, work: Callable[[Writer], Document]) -> None:
        self._work = work
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self, writer: Writer) -> Document:
        self.begun.set()
        assert self.released.wait(20)
        return self._work(writer)


def given_up(kept: Kept, held: Held, *, cancels: int = 1) -> Document:
    async def run() -> Document:
        writing = asyncio.create_task(kept.store.write(EVERYTHING, held))
        await asyncio.to_thread(held.begun.wait, 20)
        for _ in range(cancels):
            writing.cancel()
            await asyncio.sleep(0.02)
            assert not writing.done()
        held.released.set()
        return await writing

    return asyncio.run(run())


@pytest.mark.parametrize("cancels", [1, 3])
def test_one_that_has_begun_is_awaited(kept: Kept, cancels: int) -> None:
    new = NewDocument("held", "text")
    held = Held(lambda writer: create(writer, new, ACTOR, kept.limits)[0])
    assert given_up(kept, held, cancels=cancels).revision == 1
    assert kept.known("held").body == "text"


def test_one_that_has_begun_may_still_fail(kept: Kept) -> None:
    with pytest.raises(NotFound):
        given_up(kept, Held(lambda writer: delete(writer, "nowhere", ACTOR)))


def test_one_that_waits_behind_it_never_happens(kept: Kept) -> None:
    held = Held(lambda writer: create(writer, NewDocument("held", "text"), ACTOR, kept.limits)[0])
    over = threading.Event()

    async def hold_a_writer(share: str) -> None:
        SHARE.set(share)
        await kept.store.write(EVERYTHING, lambda _: over.wait(20))

    async def run() -> None:
        first = asyncio.create_task(kept.store.write(EVERYTHING, held))
        await asyncio.to_thread(held.begun.wait, 20)
        others = [asyncio.create_task(hold_a_writer(str(n))) for n in range(SHARES_ENOUGH)]
        await asyncio.sleep(0.2)
        new = NewDocument("waiting", "text")
        second = asyncio.create_task(
            kept.store.write(EVERYTHING, lambda writer: create(writer, new, ACTOR, kept.limits))
        )
        await asyncio.sleep(0.02)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        held.released.set()
        over.set()
        await asyncio.gather(first, *others)

    asyncio.run(run())
    assert kept.ids() == ["held"]


def test_one_that_does_not_end_is_not_awaited_for_ever(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zibaldone.store.outcome.WRITE_OUTCOME_SECONDS_MAX", 0.2)
    held = Held(lambda writer: create(writer, NewDocument("held", "text"), ACTOR, kept.limits)[0])

    async def run() -> None:
        writing = asyncio.create_task(kept.store.write(EVERYTHING, held))
        await asyncio.to_thread(held.begun.wait, 20)
        writing.cancel()
        with pytest.raises(DeadlineExceeded, match="may still be stored"):
            await asyncio.wait_for(writing, 20)
        held.released.set()
        # What was said is true: it ends on its own.
        for _ in range(1_000):
            if await kept.store.read(EVERYTHING, lambda reader: reader.documents.get("held")):
                return
            await asyncio.sleep(0.02)
        pytest.fail("the write never ended")

    asyncio.run(run())

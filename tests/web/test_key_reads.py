"""Reading the keys: all who need them at a time share one read, and none is too old."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.principal import Principal
from zibaldone.access.share import BACKGROUND, current_share
from zibaldone.errors import StorageUnavailable, Unauthenticated
from zibaldone.store.port import Store
from zibaldone.tools.catalogue import Catalogue
from zibaldone.web.auth import Authenticator, AuthRules

_SCOPE = {"headers": [(b"x-api-key", b"secret")], "client": ("127.0.0.1", 1)}


class SlowStore:
    """Answers when it is told to, with the keys as they were when it was asked."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[None]] = []
        self.shares: list[str] = []
        self.is_revoked = False

    async def read(self, *_: Any, **__: Any) -> list[ApiKey]:
        revoked_at_us = 1 if self.is_revoked else None
        answer = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        self.shares.append(current_share())
        await answer
        digest = secret_hash("secret")
        return [ApiKey("k", digest, "", "n", "", ("read",), None, 0, None, revoked_at_us)]


def _authenticator(store: SlowStore) -> Authenticator:
    return Authenticator(cast("Store", store), AuthRules(), Catalogue(()))


async def _steps() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_many_callers_share_a_read() -> None:
    """Each read for itself: a flood of them put thousands of reads before anybody else's."""

    async def run() -> None:
        store = SlowStore()
        door = _authenticator(store)
        callers = [asyncio.create_task(door.authenticate(dict(_SCOPE))) for _ in range(100)]
        await _steps()
        assert len(store.asked) == 1
        assert store.shares[0] != BACKGROUND  # work that nobody waits for does not hold it up
        callers[0].cancel()
        store.asked[0].set_result(None)
        principals = await asyncio.gather(*callers, return_exceptions=True)
        assert isinstance(principals[0], asyncio.CancelledError)
        assert all(isinstance(one, Principal) for one in principals[1:])
        await door.authenticate(dict(_SCOPE))
        assert len(store.asked) == 1

    asyncio.run(run())


def test_a_read_that_began_too_long_ago_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zibaldone.web.auth._KEYS_FRESH_SECONDS", 0.05)

    async def run() -> None:
        store = SlowStore()
        door = _authenticator(store)
        early = asyncio.create_task(door.authenticate(dict(_SCOPE)))
        await _steps()
        store.is_revoked = True
        await asyncio.sleep(0.1)
        late = asyncio.create_task(door.authenticate(dict(_SCOPE)))
        await _steps()
        store.asked[0].set_result(None)
        assert (await early).key_id == "k"
        await _steps()
        assert len(store.asked) == 2
        store.asked[1].set_result(None)
        with pytest.raises(Unauthenticated):
            await late

    asyncio.run(run())


def test_who_asks_just_after_a_slow_read_ended_has_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They waited, without an end and without a pause, for the one that was over: nobody was served
    ever again."""
    monkeypatch.setattr("zibaldone.web.auth._KEYS_FRESH_SECONDS", 0.05)

    async def run() -> None:
        store = SlowStore()
        door = _authenticator(store)
        early = asyncio.create_task(door.authenticate(dict(_SCOPE)))
        await _steps()
        await asyncio.sleep(0.1)
        store.asked[0].set_result(None)  # the read ends in the step before the one of the caller
        late = asyncio.create_task(door.authenticate(dict(_SCOPE)))
        await _steps()
        assert len(store.asked) == 2
        store.asked[1].set_result(None)
        assert (await early).key_id == (await late).key_id == "k"

    running = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    running.start()
    running.join(10)
    assert not running.is_alive()


def test_a_read_that_fails_is_tried_again() -> None:
    async def run() -> None:
        store = SlowStore()
        door = _authenticator(store)
        callers = [asyncio.create_task(door.authenticate(dict(_SCOPE))) for _ in range(3)]
        await _steps()
        store.asked[0].set_exception(StorageUnavailable("gone"))
        for problem in await asyncio.gather(*callers, return_exceptions=True):
            assert isinstance(problem, StorageUnavailable)
        again = asyncio.create_task(door.authenticate(dict(_SCOPE)))
        await _steps()
        store.asked[1].set_result(None)
        assert (await again).key_id == "k"

    asyncio.run(run())

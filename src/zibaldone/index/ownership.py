"""Whose turn it is: processes with different models must not work on one queue.

A job in the queue and a document's status belong to one model, that of the workers that are alive.
A worker with another model stands by, and says so: its searches go on with the vectors it has.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable

from zibaldone.errors import ZibaldoneError
from zibaldone.limits import INDEX_WORKER_ALIVE_SECONDS, INDEX_WORKER_RENEW_SECONDS
from zibaldone.store.port import Store
from zibaldone.store.upkeep import Claim, ModelInUse, Upkeep

_log = logging.getLogger("zibaldone.index")

_KEY_BITS = 62
"""Enough that no two workers have the same key; it fits a 64-bit column."""


class Ownership:
    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._worker_key = secrets.randbits(_KEY_BITS)
        self._is_held = False
        self._renew_at_s = 0.0
        self._free_since_s: float | None = None
        self.rival: str | None = None
        """The model in use, while this process stands by with another."""
        self.is_new = False
        """Others may have worked with another model: what this one lacks has to be queued."""

    def claim(self, work: Upkeep, model_id: int) -> Claim:
        """Claim the turn in a transaction that works on the queue; `note` the result afterwards."""
        return work.models.claim(self._worker_key, model_id, self._clock())

    def note(self, claim: Claim) -> bool:
        """Whether this process may work on the queue."""
        if claim.rival is not None:
            if self.rival != claim.rival:
                _log.warning("standing by: another process indexes with %s", claim.rival)
            self.rival, self._is_held, self._free_since_s = claim.rival, False, None
            return False
        if self.rival is not None:
            _log.warning("taking over the index: nobody works with %s any more", self.rival)
        self.rival, self._is_held = None, True
        self.is_new = self.is_new or claim.is_new
        self._renew_at_s = time.monotonic() + INDEX_WORKER_RENEW_SECONDS
        return True

    async def hold(self, model_id: int) -> bool:
        """Whether it is this process's turn. Renews its claim when that is due."""
        if self._is_held and time.monotonic() < self._renew_at_s:
            return True
        if self.rival is not None and not await self._is_free_for_long(model_id):
            return False
        return self.note(await self._store.upkeep(lambda work: self.claim(work, model_id)))

    async def _is_free_for_long(self, model_id: int) -> bool:
        """Whether nobody has worked with another model for a while; it may merely be restarting."""
        in_use = await model_in_use(self._store, self._clock())
        if in_use is not None and in_use.model_id != model_id:
            self.rival, self._free_since_s = in_use.identity, None
            return False
        if in_use is not None:
            return True  # another process with this model has taken over
        if self._free_since_s is None:
            self._free_since_s = time.monotonic()
        return time.monotonic() - self._free_since_s >= INDEX_WORKER_ALIVE_SECONDS

    async def resign(self) -> None:
        """Others need not wait. Also after a claim that was cancelled: it may have been made."""
        self._is_held = False
        with contextlib.suppress(ZibaldoneError):
            await self._store.upkeep(lambda work: work.models.resign(self._worker_key))


async def model_in_use(store: Store, at_us: int) -> ModelInUse | None:
    """The model of the workers that are alive; None: there are none."""
    return await store.upkeep(lambda work: work.models.in_use(at_us), write=False)

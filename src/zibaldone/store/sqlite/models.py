"""The embedding models that made vectors here, and the workers that use one of them."""

from __future__ import annotations

import apsw

from zibaldone.limits import INDEX_WORKER_ALIVE_SECONDS
from zibaldone.store import statements
from zibaldone.store.rows import require
from zibaldone.store.upkeep import Claim, ModelInUse, ModelVectors

_SQL = statements.load("zibaldone.store.sqlite", "models.sql")

_ALIVE_US = int(INDEX_WORKER_ALIVE_SECONDS * 1_000_000)


class ModelUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def id(self, identity: str, dimensions: int, now_us: int) -> int:
        values = {"identity": identity, "dimensions": dimensions, "created_at_us": now_us}
        self._raw.execute(_SQL["add"], values)
        model_id: int = self._raw.execute(_SQL["id"], {"identity": identity}).get
        return model_id

    def all(self) -> list[ModelVectors]:
        return [ModelVectors(*row) for row in self._raw.execute(_SQL["all"])]

    def in_use(self, now_us: int) -> ModelInUse | None:
        row = self._raw.execute(_SQL["in_use"], _alive(now_us)).fetchone()
        return None if row is None else ModelInUse(*require(row, (int, str)))

    def claim(self, worker_key: int, model_id: int, now_us: int) -> Claim:
        self._raw.execute(_SQL["remove_expired"], _alive(now_us))
        in_use = self.in_use(now_us)
        if in_use is not None and in_use.model_id != model_id:
            return Claim(in_use.identity, is_new=True)
        is_known = self._raw.execute(_SQL["is_known"], {"worker_key": worker_key}).get
        until_us = now_us + _ALIVE_US
        values = {"worker_key": worker_key, "model_id": model_id, "alive_until_us": until_us}
        self._raw.execute(_SQL["register"], values)
        return Claim(None, is_new=not is_known)

    def resign(self, worker_key: int) -> None:
        self._raw.execute(_SQL["resign"], {"worker_key": worker_key})


def _alive(now_us: int) -> dict[str, int]:
    return {"now_us": now_us, "latest_us": now_us + 2 * _ALIVE_US}

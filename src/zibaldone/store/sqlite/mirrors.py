"""Indexes of vectors outside of the file: what each has yet to take over."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.store import rows, statements
from zibaldone.store.sqlite.vector_index import unpack
from zibaldone.store.tenants import range_values
from zibaldone.store.upkeep import MirrorChange, MirroredChunk, MirrorState

_SQL = statements.load("zibaldone.store.sqlite", "mirrors.sql")


class MirrorUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def begin(self, name: str, at_us: int) -> bool:
        if self._raw.execute(_SQL["begin"], {"name": name, "at_us": at_us}).get is None:
            return False
        self.refill(name)
        return True

    def refill(self, name: str) -> None:
        self._raw.execute(_SQL["note_all"], {"name": name})

    def end(self, name: str) -> bool:
        self._raw.execute(_SQL["forget_changes"], {"name": name})
        return self._raw.execute(_SQL["end"], {"name": name}).get is not None

    def all(self) -> dict[str, MirrorState]:
        selected = self._raw.execute(_SQL["all"])
        return {name: MirrorState(applied, pending) for name, applied, pending in selected}

    def state(self, name: str) -> MirrorState | None:
        return self.all().get(name)

    def lease(self, name: str, owner: str, *, now_us: int, until_us: int) -> bool:
        values = {"name": name, "owner": owner, "now_us": now_us, "until_us": until_us}
        return self._raw.execute(_SQL["lease"], values).get is not None

    def changes(self, name: str, limit: int) -> list[MirrorChange]:
        selected = self._raw.execute(_SQL["changes"], {"name": name, "limit": limit})
        return [MirrorChange(*row) for row in selected]

    def chunks(self, model_id: int, document_keys: Iterable[int]) -> list[MirroredChunk]:
        values = {"model_id": model_id, "document_keys": rows.dumps(list(document_keys))}
        return [
            MirroredChunk(*(*row[:8], tuple(rows.loads(row[8], list)), unpack(row[9])))
            for row in self._raw.execute(_SQL["chunks"], values)
        ]

    def applied(self, name: str, owner: str, changes: Iterable[MirrorChange]) -> bool:
        if self._raw.execute(_SQL["is_held"], {"name": name, "owner": owner}).get is None:
            return False
        listed = [(change.document_key, change.seq) for change in changes]
        self._raw.execute(_SQL["applied"], {"name": name, "changes": rows.dumps(listed)})
        seq = max((seq for _, seq in listed), default=0)
        self._raw.execute(_SQL["advance"], {"name": name, "seq": seq})
        return True


def unmirrored(raw: apsw.Connection, tenant: Tenant, name: str, limit: int) -> list[str] | None:
    selected = raw.execute(_SQL["unmirrored"], {"name": name, "limit": limit + 1})
    keys = [row[0] for row in selected]
    if len(keys) > limit or None in keys:
        return None
    values = {**range_values(tenant), "document_keys": rows.dumps(keys)}
    return [row[0] for row in raw.execute(_SQL["ids"], values)]

"""Conversations with assistants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.model.consult import Message, SentFile, Session, SessionKey, Spent
from zibaldone.store import session_rows as stored
from zibaldone.store import statements
from zibaldone.store.rows import dumps

_SQL = statements.load("zibaldone.store.sqlite", "sessions.sql")


class Sessions:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def get(self, key: SessionKey) -> Session | None:
        row = self._raw.execute(_SQL["get"], stored.key_values(self._tenant, key)).fetchone()
        return None if row is None else stored.session(row)

    def page(
        self,
        owner: str,
        *,
        assistant: str | None = None,
        limit: int,
        before: tuple[int, int] | None = None,
    ) -> list[Session]:
        values = stored.page_values(self._tenant, owner, assistant, limit, before)
        return [stored.session(row) for row in self._raw.execute(_SQL["page"], values)]

    def messages(self, key: SessionKey, from_position: int = 0) -> list[Message]:
        values = stored.key_values(self._tenant, key, from_position=from_position)
        selected = self._raw.execute(_SQL["messages"], values)
        return [stored.unpack_message(message) for (message,) in selected]

    def message_count(self, key: SessionKey) -> int:
        values = stored.key_values(self._tenant, key)
        count: int = self._raw.execute(_SQL["message_count"], values).get
        return count

    def stable(self, key: SessionKey) -> tuple[str, ...] | None:
        row = self._raw.execute(_SQL["stable"], stored.key_values(self._tenant, key)).fetchone()
        return None if row is None else stored.unpack_paths(row[0])

    def sent(self, key: SessionKey) -> dict[str, SentFile]:
        folders = self._folders(key)
        selected = self._raw.execute(_SQL["sent"], stored.key_values(self._tenant, key))
        return dict(map(folders.sent, selected))

    def spent(self, owner: str, day: int) -> Spent:
        values = {"namespace": self._tenant.namespace, "owner": owner, "day": day}
        row = self._raw.execute(_SQL["spent"], values).fetchone()
        return Spent() if row is None else Spent(*row)

    def put(self, session: Session) -> None:
        self._raw.execute(_SQL["put"], stored.session_values(self._tenant, session))

    def put_messages(
        self, key: SessionKey, messages: Sequence[Message], from_position: int
    ) -> None:
        values = stored.key_values(self._tenant, key, from_position=from_position)
        self._raw.execute(_SQL["cut_messages"], values)
        self._raw.executemany(
            _SQL["put_message"],
            [
                stored.key_values(
                    self._tenant, key, position=position, message=stored.pack_message(message)
                )
                for position, message in enumerate(messages, from_position)
            ],
        )

    def put_stable(self, key: SessionKey, paths: Sequence[str], at_us: int) -> None:
        values = stored.key_values(
            self._tenant, key, inline_paths=stored.pack_paths(paths), at_us=at_us
        )
        self._raw.execute(_SQL["put_stable"], values)

    def put_sent(self, key: SessionKey, files: Mapping[str, SentFile]) -> None:
        folders = self._folders(key)
        self._raw.executemany(
            _SQL["put_sent"],
            [
                stored.key_values(
                    self._tenant,
                    key,
                    file_path=folders.short(path),
                    last_size=file.size,
                    last_mtime=file.mtime_ns,
                    digest=file.digest,
                )
                for path, file in files.items()
            ],
        )
        if (packed := folders.to_store) is not None:
            values = stored.key_values(self._tenant, key, folders=packed)
            self._raw.execute(_SQL["put_folders"], values)

    def remove_sent(self, key: SessionKey, paths: Iterable[str]) -> None:
        folders = self._folders(key)
        values = stored.key_values(self._tenant, key, paths=dumps([*map(folders.short, paths)]))
        self._raw.execute(_SQL["remove_sent"], values)

    def remove(self, key: SessionKey) -> bool:
        values = stored.key_values(self._tenant, key, from_position=0)
        for statement in ("cut_messages", "remove_stable", "remove_all_sent", "remove"):
            self._raw.execute(_SQL[statement], values)
        return self._raw.changes() > 0

    def lease(self, key: SessionKey, holder: str, *, now_us: int, until_us: int) -> bool:
        values = stored.lease_values(self._tenant, key, holder, now_us, until_us)
        return self._raw.execute(_SQL["lease"], values).fetchone() is not None

    def holds(self, key: SessionKey, holder: str) -> bool:
        values = stored.key_values(self._tenant, key, lease_owner=holder)
        return self._raw.execute(_SQL["holds"], values).fetchone() is not None

    def release(self, key: SessionKey, holder: str) -> None:
        self._raw.execute(_SQL["release"], stored.key_values(self._tenant, key, lease_owner=holder))

    def spend(self, owner: str, day: int, spent: Spent) -> Spent:
        values = {"namespace": self._tenant.namespace, "owner": owner, "day": day}
        more = {"tokens": spent.tokens, "cost": spent.cost}
        row: Any = self._raw.execute(_SQL["spend"], {**values, **more}).fetchone()
        return Spent(*row)

    def _folders(self, key: SessionKey) -> stored.Folders:
        row = self._raw.execute(_SQL["folders"], stored.key_values(self._tenant, key)).fetchone()
        return stored.Folders(None if row is None else row[0])

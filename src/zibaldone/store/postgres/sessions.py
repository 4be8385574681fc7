"""Conversations with assistants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from zibaldone.access.principal import Tenant
from zibaldone.model.consult import Message, SentFile, Session, SessionKey, Spent
from zibaldone.store import session_rows as stored
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "sessions.sql")


class Sessions:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def get(self, key: SessionKey) -> Session | None:
        statement = "lock" if self._transaction.is_write else "get"
        row = self._transaction.row(_SQL[statement], stored.key_values(self._tenant, key))
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
        return [stored.session(row) for row in self._transaction.execute(_SQL["page"], values)]

    def messages(self, key: SessionKey, from_position: int = 0) -> list[Message]:
        values = stored.key_values(self._tenant, key, from_position=from_position)
        selected = self._transaction.execute(_SQL["messages"], values)
        return [stored.unpack_message(message) for (message,) in selected]

    def message_count(self, key: SessionKey) -> int:
        values = stored.key_values(self._tenant, key)
        count: int = self._transaction.value(_SQL["message_count"], values)
        return count

    def stable(self, key: SessionKey) -> tuple[str, ...] | None:
        row = self._transaction.row(_SQL["stable"], stored.key_values(self._tenant, key))
        return None if row is None else stored.unpack_paths(row[0])

    def sent(self, key: SessionKey) -> dict[str, SentFile]:
        folders = self._folders(key)
        selected = self._transaction.execute(_SQL["sent"], stored.key_values(self._tenant, key))
        return dict(map(folders.sent, selected))

    def spent(self, owner: str, day: int) -> Spent:
        values = {"namespace": self._tenant.namespace, "owner": owner, "day": day}
        row = self._transaction.row(_SQL["spent"], values)
        return Spent() if row is None else Spent(*row)

    def put(self, session: Session) -> None:
        self._transaction.defer(_SQL["put"], stored.session_values(self._tenant, session))

    def put_messages(
        self, key: SessionKey, messages: Sequence[Message], from_position: int
    ) -> None:
        values = stored.key_values(self._tenant, key, from_position=from_position)
        self._transaction.defer(_SQL["cut_messages"], values)
        packed = [stored.pack_message(message) for message in messages]
        self._transaction.defer(_SQL["put_messages"], {**values, "messages": packed})

    def put_stable(self, key: SessionKey, paths: Sequence[str], at_us: int) -> None:
        values = stored.key_values(
            self._tenant, key, inline_paths=stored.pack_paths(paths), at_us=at_us
        )
        self._transaction.defer(_SQL["put_stable"], values)

    def put_sent(self, key: SessionKey, files: Mapping[str, SentFile]) -> None:
        folders = self._folders(key)
        values = stored.key_values(
            self._tenant,
            key,
            paths=[*map(folders.short, files)],
            sizes=[file.size for file in files.values()],
            mtimes=[file.mtime_ns for file in files.values()],
            digests=[file.digest for file in files.values()],
        )
        self._transaction.defer(_SQL["put_sent"], values)
        if (packed := folders.to_store) is not None:
            values = stored.key_values(self._tenant, key, folders=packed)
            self._transaction.defer(_SQL["put_folders"], values)

    def remove_sent(self, key: SessionKey, paths: Iterable[str]) -> None:
        folders = self._folders(key)
        values = stored.key_values(self._tenant, key, paths=[*map(folders.short, paths)])
        self._transaction.defer(_SQL["remove_sent"], values)

    def remove(self, key: SessionKey) -> bool:
        is_there = self.get(key) is not None
        values = stored.key_values(self._tenant, key, from_position=0)
        for statement in ("cut_messages", "remove_stable", "remove_all_sent", "remove"):
            self._transaction.defer(_SQL[statement], values)
        return is_there

    def lease(self, key: SessionKey, holder: str, *, now_us: int, until_us: int) -> bool:
        values = stored.lease_values(self._tenant, key, holder, now_us, until_us)
        return self._transaction.row(_SQL["lease"], values) is not None

    def holds(self, key: SessionKey, holder: str) -> bool:
        values = stored.key_values(self._tenant, key, lease_owner=holder)
        return self._transaction.row(_SQL["holds"], values) is not None

    def release(self, key: SessionKey, holder: str) -> None:
        self._transaction.defer(
            _SQL["release"], stored.key_values(self._tenant, key, lease_owner=holder)
        )

    def spend(self, owner: str, day: int, spent: Spent) -> Spent:
        values = {"namespace": self._tenant.namespace, "owner": owner, "day": day}
        more = {"tokens": spent.tokens, "cost": spent.cost}
        (row,) = self._transaction.execute(_SQL["spend"], {**values, **more})
        return Spent(*row)

    def _folders(self, key: SessionKey) -> stored.Folders:
        row = self._transaction.row(_SQL["folders"], stored.key_values(self._tenant, key))
        return stored.Folders(None if row is None else row[0])

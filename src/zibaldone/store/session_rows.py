"""Rows of sessions to values of the model, and back; the same for every engine."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.consult import Message, SentFile, Session, SessionKey, Usage
from zibaldone.store.rows import (
    TEXT_OR_NONE,
    Kinds,
    Row,
    UnreadableRowError,
    dumps,
    loads,
    require,
)

FOR_EVER_US = 2**62

_SESSION: Kinds = (
    *(str, str, str, int, int, int, int, int, int, int, (int, float), str, int, int, int),
)
_SENT: Kinds = (str, int, int, TEXT_OR_NONE)


def key_values(tenant: Tenant, key: SessionKey, **more: Any) -> dict[str, Any]:
    return {
        "namespace": tenant.namespace,
        "owner": key.owner,
        "assistant": key.assistant,
        "session_id": key.session_id,
        **more,
    }


def lease_values(
    tenant: Tenant, key: SessionKey, holder: str, now_us: int, until_us: int
) -> dict[str, Any]:
    turn, colon, _ = holder.partition(":")
    return key_values(
        tenant,
        key,
        lease_owner=holder,
        turn=turn + (colon or ":"),
        now_us=now_us,
        until_us=until_us,
    )


def page_values(
    tenant: Tenant,
    owner: str,
    assistant: str | None,
    limit: int,
    before: tuple[int, int] | None,
) -> dict[str, Any]:
    before_us, before_key = before or (FOR_EVER_US, FOR_EVER_US)
    return {
        "namespace": tenant.namespace,
        "owner": owner,
        "assistant": assistant,
        "limit": limit,
        "before_us": before_us,
        "before_key": before_key,
    }


def session(row: Row) -> Session:
    require(row, _SESSION)
    return Session(
        key=SessionKey(row[0], row[1], row[2]),
        turns=row[3],
        tokens=row[4],
        usage=Usage(row[5], row[6], row[7], row[8]),
        saved_tokens=row[9],
        cost=float(row[10]),
        state=loads(row[11], dict),
        created_at_us=row[12],
        updated_at_us=row[13],
        storage_key=row[14],
    )


def session_values(tenant: Tenant, session: Session) -> dict[str, Any]:
    return key_values(
        tenant,
        session.key,
        turns=session.turns,
        tokens=session.tokens,
        input_tokens=session.usage.input_tokens,
        cached_tokens=session.usage.cached_tokens,
        cache_write_tokens=session.usage.cache_write_tokens,
        output_tokens=session.usage.output_tokens,
        saved_tokens=session.saved_tokens,
        cost=session.cost,
        state=dumps(session.state),
        created_at_us=session.created_at_us,
        updated_at_us=session.updated_at_us,
    )


class Folders:
    """The folders of a session's files, each stored once: the paths of a tree repeat them.

    A file is stored as the number of its folder, a slash and its name.
    """

    def __init__(self, stored: bytes | None) -> None:
        self._folders = [] if stored is None else list(unpack_paths(stored))
        self._numbers = {folder: number for number, folder in enumerate(self._folders)}
        self._stored_count = len(self._folders)

    def short(self, path: str) -> str:
        """As it is stored; a folder that is not known yet is added."""
        cut = path.rfind("/") + 1
        folder = path[:cut]
        if folder not in self._numbers:
            self._numbers[folder] = len(self._folders)
            self._folders.append(folder)
        return f"{self._numbers[folder]}/{path[cut:]}"

    def sent(self, row: Row) -> tuple[str, SentFile]:
        short, size, mtime_ns, digest = require(row, _SENT)
        number, _, name = short.partition("/")
        try:
            folder = self._folders[int(number)]
        except (ValueError, IndexError):
            raise UnreadableRowError("a sent file has no folder") from None
        return folder + name, SentFile(size, mtime_ns, digest)

    @property
    def to_store(self) -> bytes | None:
        """None: there are no new ones."""
        has_more = len(self._folders) > self._stored_count
        return pack_paths(self._folders) if has_more else None


def pack_message(message: Message) -> bytes:
    """Compressed: a base of hundreds of files is a few megabytes of text."""
    return zlib.compress(orjson.dumps(message.to_json()), 1)


def unpack_message(stored: bytes) -> Message:
    return Message.from_json(orjson.loads(zlib.decompress(stored)))


def pack_paths(paths: Sequence[str]) -> bytes:
    return zlib.compress(orjson.dumps(list(paths)), 6)


def unpack_paths(stored: bytes) -> tuple[str, ...]:
    return tuple(orjson.loads(zlib.decompress(stored)))

"""The tables that every engine has, described for moving them from one store to another.

What an engine keeps beside them it makes itself: the keyword index, logs, sums. Storage keys are
kept, so rows mean the same in the other store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zibaldone.errors import ConfigurationError
from zibaldone.model.vector import np

Kind = Literal["int", "text", "bytes", "float", "vector"]
"""A vector is given as the bytes of its float32 values, little-endian. An engine may store it
rounded."""

Value = int | str | bytes | float | None
Row = tuple[Any, ...]
Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    key: tuple[str, ...]
    """Rows are read in its order. Text is compared byte by byte."""
    columns: tuple[Column, ...]
    sequence: str | None = None
    """The column whose values the engine hands out, none of them twice."""

    def key_of(self, row: Row) -> Key:
        values = dict(zip((column.name for column in self.columns), row, strict=True))
        return tuple(values[name] for name in self.key)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


_KINDS: dict[str, Kind] = {
    "": "text",
    "int": "int",
    "bytes": "bytes",
    "float": "float",
    "vector": "vector",
}


def _table(name: str, key: str, columns: str, sequence: str | None = None) -> Table:
    """`columns`: names separated by spaces; `name:kind` where it is not a text."""
    words = [word.partition(":") for word in columns.split()]
    parsed = tuple(Column(column, _KINDS[kind]) for column, _, kind in words)
    return Table(name, tuple(key.split()), parsed, sequence)


TABLES: tuple[Table, ...] = (
    _table(
        "sources",
        "source_id",
        "source_id:int namespace name kind enabled:int definition created_at_us:int "
        "last_sync_at_us:int chunking_version:int",
        "source_id",
    ),
    _table(
        "documents",
        "document_key",
        "document_key:int namespace document_id source_id:int parent_id title tags mime metadata "
        "pk revision:int content_hash:bytes content_chars:int created_at_us:int updated_at_us:int "
        "deleted_at_us:int updated_by operation vector_status vector_error chunking_version:int",
        "document_key",
    ),
    _table("bodies", "document_key", "document_key:int body"),
    _table(
        "revisions",
        "document_key revision",
        "document_key:int revision:int title tags mime metadata content_chars:int "
        "written_at_us:int written_by operation body:bytes",
    ),
    _table(
        "facets",
        "document_key",
        "document_key:int created_us:int score:float post_type:int",
    ),
    _table("document_tags", "document_key tag", "document_key:int tag"),
    _table(
        "chunks",
        "chunk_key",
        "chunk_key:int document_key:int chunk_index:int start_char:int end_char:int heading body "
        "content_hash:bytes",
        "chunk_key",
    ),
    _table(
        "models",
        "model_id",
        "model_id:int identity dimensions:int created_at_us:int",
        "model_id",
    ),
    _table("vectors", "chunk_key model_id", "chunk_key:int model_id:int vector:vector"),
    _table(
        "audit",
        "audit_key",
        "audit_key:int at_us:int namespace principal action document_id revision:int outcome "
        "request_id",
        "audit_key",
    ),
    _table(
        "api_keys",
        "key_id",
        "key_id secret_hash:bytes label namespace path_prefix effects profiles created_at_us:int "
        "expires_at_us:int revoked_at_us:int",
    ),
    _table(
        "jobs",
        "job_key",
        "job_key:int job_id kind state:int namespace prefix subject created_at_us:int "
        "not_before_us:int unique_key payload attempts:int crashes:int cancel_requested:int "
        "leased_until_us:int lease_owner started_at_us:int finished_at_us:int progress_done:float "
        "progress_total:float progress_message result error key_id",
        "job_key",
    ),
    _table(
        "schedules",
        "name",
        "name cron kind namespace payload next_run_at_us:int last_run_at_us:int",
    ),
    _table("pulled_runs", "source_id", "source_id:int namespace run:int is_complete:int"),
    _table(
        "pulled_blocks",
        "source_id block",
        "source_id:int block:int namespace rows:int digest:bytes first_key is_settled:int",
    ),
    _table(
        "pulled_rows",
        "source_id document_id",
        "source_id:int document_id namespace block:int mark:int content:bytes",
    ),
    _table(
        "memory_episodes",
        "document_key",
        "document_key:int namespace group_id episode_id valid_at_us:int",
    ),
    _table(
        "memory_entities",
        "document_key entity_key",
        "document_key:int entity_key namespace group_id name label valid_at_us:int",
    ),
    _table(
        "memory_facts",
        "document_key fact_index",
        "document_key:int fact_index:int namespace group_id subject relation object slot fact "
        "valid_at_us:int",
    ),
    _table(
        "consult_sessions",
        "session_key",
        "session_key:int namespace owner assistant session_id turns:int tokens:int "
        "input_tokens:int cached_tokens:int cache_write_tokens:int output_tokens:int "
        "saved_tokens:int cost:float state sent_folders:bytes created_at_us:int updated_at_us:int "
        "lease_owner "
        "leased_until_us:int",
        "session_key",
    ),
    _table(
        "consult_messages",
        "session_key position",
        "session_key:int position:int message:bytes",
    ),
    _table(
        "stable_inline_lists",
        "session_key",
        "session_key:int inline_paths:bytes created_at:int updated_at:int",
    ),
    _table(
        "sent_files",
        "session_key file_path",
        "session_key:int file_path last_size:int last_mtime:int digest",
    ),
    _table(
        "consult_spending",
        "namespace owner day",
        "namespace owner day:int tokens:int cost:float",
    ),
    _table(
        "document_links",
        "document_key kind target",
        "document_key:int kind:int target namespace place:int",
    ),
    _table("usage", "namespace", "namespace documents:int revisions:int bytes:int"),
)
"""In an order in which they can be filled: what a row refers to is there before it."""

BY_NAME = {table.name: table for table in TABLES}

CHUNKS = BY_NAME["chunks"]


class Digest:
    """A hash over rows in the order of their keys; the same for equal rows of any engine."""

    def __init__(self, table: Table) -> None:
        self._kinds = [column.kind for column in table.columns]
        self._hash = hashlib.blake2b(digest_size=16)
        self.rows = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._hash.update(b"".join(map(_encoded, self._kinds, row)))
            self.rows += 1

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


def _encoded(kind: Kind, value: Value) -> bytes:
    """With its length before it, so that no two rows have the same bytes."""
    if value is None:
        return b"-"
    if kind == "vector" and isinstance(value, bytes):
        data = fingerprint(value)
    elif isinstance(value, bytes):
        data = value
    elif isinstance(value, str):
        data = value.encode()
    else:
        data = repr(float(value) if kind == "float" else value).encode()
    return b"%d:%b" % (len(data), data)


def fingerprint(vector: bytes) -> bytes:
    """The values in 127ths of the largest: what all engines keep of a vector, whatever they round.

    Computed as the embedded engine does it, so that both round to the same side.
    """
    values = np.frombuffer(vector, np.dtype("<f4"))
    peak = float(np.abs(values).max(initial=0.0)) or 1.0
    return bytes(np.rint(values * (127.0 / peak)).astype(np.int8).tobytes())


def size_bytes(row: Sequence[Any]) -> int:
    """About how much memory a row takes."""
    return sum(len(value) if isinstance(value, bytes | str) else 8 for value in row)


def half_filled(description: str) -> ConfigurationError:
    """What opening such a store raises, unless it is to go on with it."""
    return ConfigurationError(
        f"{description[0].upper()}{description[1:]} is being filled by 'zibaldone migrate' and is "
        "not complete. Run that command again to finish it, or 'zibaldone restore' if it was that."
    )

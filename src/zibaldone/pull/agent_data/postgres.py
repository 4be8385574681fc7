"""AgentData's table in its PostgreSQL database, read in one snapshot and never written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from zibaldone import extras
from zibaldone.errors import InvalidArgument, StorageUnavailable
from zibaldone.pull.agent_data.file import row_of
from zibaldone.pull.agent_data.row import KbRow, KbRows

SCHEMES = ("postgresql://", "postgres://")

_CONNECT_SECONDS_MAX = 15
_ROWS_AT_A_TIME = 100
_SELECT = 'SELECT key::text, data FROM kb_documents ORDER BY key COLLATE "C"'


def redacted(url: str) -> str:
    """The address without its password."""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def opened(url: str) -> Iterator[KbRows]:
    psycopg = _library()
    _refuse_malformed(psycopg, url)
    with _driver_errors_translated(psycopg, url):
        connection = psycopg.connect(
            url, connect_timeout=_CONNECT_SECONDS_MAX, application_name="zibaldone import"
        )
    with connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        psycopg.types.json.set_json_loads(orjson.loads, connection)

        def rows() -> Iterator[KbRow]:
            with (
                _driver_errors_translated(psycopg, url),
                connection.cursor(name="zibaldone") as cursor,
            ):
                cursor.itersize = _ROWS_AT_A_TIME
                cursor.execute(_SELECT)
                for number, (key, data) in enumerate(cursor, 1):
                    yield row_of(number, key or "", data)

        yield rows


def _refuse_malformed(psycopg: Any, url: str) -> None:
    """Refuse in our own words: the driver quotes what it cannot parse, maybe a password."""
    try:
        psycopg.conninfo.conninfo_to_dict(url)
        urlsplit(url)
    except (psycopg.ProgrammingError, ValueError):
        raise InvalidArgument(
            "The address of the database is not well formed: postgresql://user@host:port/name",
            field="source",
        ) from None


def _library() -> Any:
    extras.require("postgres", "psycopg.conninfo")
    extras.require("postgres", "psycopg.types.json")
    return extras.require("postgres", "psycopg")


@contextmanager
def _driver_errors_translated(psycopg: Any, url: str) -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as problem:
        raise InvalidArgument(
            f"{redacted(url)} has no table kb_documents (key, data): {_first_line(problem, url)}",
            field="source",
        ) from None
    except psycopg.Error as problem:
        raise StorageUnavailable(
            f"{redacted(url)} cannot be read: {_first_line(problem, url)}"
        ) from None


def _first_line(problem: Exception, url: str) -> str:
    """The driver's message without the secrets of the address."""
    text = next(iter(str(problem).strip().splitlines()), type(problem).__name__)
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return text


def _secrets(url: str) -> set[str]:
    parts = urlsplit(url)
    password = parts.password or ""
    named = parse_qs(parts.query).get("password", [])
    return {secret for secret in (password, unquote(password), *named) if secret}

"""The databases that sources are pulled from in tests: one class each, the same calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

import psycopg

from tests.drivers.mariadb import mariadb_server
from tests.drivers.postgres import databases
from tests.drivers.posts import COLUMNS, DATES, NUMBERS, Post


class Database(Protocol):
    url: str
    has_native_times: bool

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]: ...
    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...
    def close(self) -> None: ...


class SqliteFile:
    has_native_times = False

    def __init__(self, folder: Path) -> None:
        self.file = folder / "source's file.db"
        self.url = f"sqlite:///{self.file}"
        self.raw = sqlite3.connect(self.file, isolation_level=None)
        self.raw.execute("PRAGMA journal_mode = WAL")

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.raw.execute(sql.replace("%s", "?"), _as_text(values)).fetchall()

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.raw.execute("BEGIN")
        self.raw.executemany(sql.replace("%s", "?"), map(_as_text, rows))
        self.raw.execute("COMMIT")

    def close(self) -> None:
        self.raw.close()


def _as_text(values: Sequence[Any]) -> list[Any]:
    return [str(value) if isinstance(value, datetime) else value for value in values]


class MariaDb:
    has_native_times = True

    def __init__(self, folder: Path) -> None:
        del folder
        server = mariadb_server()
        self.name = server.database()
        self.url = server.url(self.name)
        self.raw = server.connect(self.name)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self.raw.cursor() as cursor:
            cursor.execute(_backticks(sql), values or None)
            return list(cursor.fetchall())

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.raw.begin()
        with self.raw.cursor() as cursor:
            cursor.executemany(_backticks(sql), list(rows))
        self.raw.commit()

    def close(self) -> None:
        self.execute(f"DROP DATABASE {self.name}")
        self.raw.close()


def _backticks(sql: str) -> str:
    return sql.replace('"', "`")


class PostgresDatabase:
    has_native_times = True

    def __init__(self, folder: Path) -> None:
        del folder
        self.name = f"source_{uuid4().hex[:12]}"
        server = databases()
        server.execute(f"CREATE DATABASE {self.name}")
        self.admin_url = server.admin_url(self.name)
        self.raw = psycopg.connect(self.admin_url, autocommit=True)
        info = self.raw.info
        self.url = f"postgresql://{info.user}@/{self.name}?host={quote(info.host, safe='')}"

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        cursor = self.raw.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.raw.transaction(), self.raw.cursor() as cursor:
            cursor.executemany(sql.encode(), rows)

    def close(self) -> None:
        self.raw.close()
        databases().execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")


DATABASES: dict[str, Callable[[Path], Database]] = {
    "sqlite": SqliteFile,
    "mariadb": MariaDb,
    "postgres": PostgresDatabase,
}


def _type(database: Database, column: str) -> str:
    if column in NUMBERS:
        return "BIGINT" if column != "Id" else "BIGINT PRIMARY KEY"
    if column in DATES or column.endswith("Date"):
        return {
            SqliteFile: "TEXT",
            MariaDb: "DATETIME",
            PostgresDatabase: "TIMESTAMP",
        }[type(database)]
    if column == "Body":
        return "LONGTEXT" if isinstance(database, MariaDb) else "TEXT"
    return "TEXT" if isinstance(database, SqliteFile) else "VARCHAR(300)"


def create_posts(database: Database, table: str = "posts") -> None:
    columns = ", ".join(f'"{name}" {_type(database, name)}' for name in COLUMNS)
    database.execute(f'CREATE TABLE "{table}" ({columns})')


def insert_posts(database: Database, posts: Iterable[Post], table: str = "posts") -> None:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    places = ", ".join(["%s"] * len(COLUMNS))
    database.many(
        f'INSERT INTO "{table}" ({names}) VALUES ({places})',
        [list(post.values.values()) for post in posts],
    )


def update_posts(database: Database, posts: Iterable[Post], table: str = "posts") -> None:
    names = ", ".join(f'"{name}" = %s' for name in COLUMNS[1:])
    database.many(
        f'UPDATE "{table}" SET {names} WHERE "Id" = %s',
        [[*list(post.values.values())[1:], post.values["Id"]] for post in posts],
    )


def delete_posts(database: Database, numbers: Iterable[int], table: str = "posts") -> None:
    database.many(f'DELETE FROM "{table}" WHERE "Id" = %s', [[number] for number in numbers])

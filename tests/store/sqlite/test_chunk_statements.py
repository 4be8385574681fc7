"""The chunks of a long document: stored in few steps, whatever changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from zibaldone.model.chunk import ChunkChanges, ChunkTerms, JoinedRuns, MovedChunk, NewChunk
from zibaldone.store.rows import UnreadableRowError
from zibaldone.store.sqlite.chunks import ChunkTable
from zibaldone.store.sqlite.schema import prepare

CHUNKS = 2_500
STEPS_MAX = 20
"""Of statements; at each, whoever computes may have the interpreter for a millisecond."""


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[apsw.Connection]:
    prepare(tmp_path / "x.db", 5)
    connection = apsw.Connection(str(tmp_path / "x.db"))
    connection.execute("PRAGMA foreign_keys = OFF")
    yield connection
    connection.close()


def _chunk(number: int) -> NewChunk:
    terms = ChunkTerms(
        JoinedRuns([["title"]]), JoinedRuns([[]]), JoinedRuns([[f"n{number}"], ["other"]])
    )
    text = f'Text "{number}" \\ \x01 é 😀'
    return NewChunk(number, number, number + 1, "A\nheading", text, bytes([number % 256, 0]), terms)


def _rows(raw: apsw.Connection, what: str) -> list[tuple[object, ...]]:
    return list(raw.execute(f"SELECT {what} FROM chunks ORDER BY chunk_index"))


def test_many_chunks_come_move_and_go_in_few_steps(raw: apsw.Connection) -> None:
    table = ChunkTable(raw)
    steps = 0

    def count(*_: object) -> bool:
        nonlocal steps
        steps += 1
        return True

    def apply(**changes: object) -> None:
        nonlocal steps
        steps = 0
        raw.exec_trace = count
        table.apply(7, ChunkChanges(**changes))  # type: ignore[arg-type]
        raw.exec_trace = None
        assert steps < STEPS_MAX

    added = [_chunk(number) for number in range(CHUNKS)]
    apply(added=added)
    assert _rows(raw, "chunk_index, start_char, end_char, heading, body, content_hash") == [
        (each.index, each.start, each.end, each.heading, each.text, each.content_hash)
        for each in added
    ]
    keys = [row[0] for row in _rows(raw, "chunk_key")]
    for number in (0, 1_234, CHUNKS - 1):
        match = f'body : ("n{number}" AND "other") AND title : "title"'
        found = raw.execute("SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH ?", (match,))
        assert list(found) == [(keys[number],)]

    stored = table.stored(7)
    assert [(each.chunk_key, each.content_hash, each.index, each.start) for each in stored] == [
        (key, each.content_hash, each.index, each.start)
        for key, each in zip(keys, added, strict=True)
    ]

    apply(moved=[MovedChunk(each.chunk_key, each.index, 5, 6) for each in stored])
    assert set(_rows(raw, "start_char, end_char")) == {(5, 6)}
    apply(removed=keys[1:])
    assert _rows(raw, "chunk_key") == [(keys[0],)]
    left = raw.execute("SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH 'other'")
    assert list(left) == [(keys[0],)]


def test_a_damaged_place_of_a_chunk_is_told(raw: apsw.Connection) -> None:
    table = ChunkTable(raw)
    table.apply(7, ChunkChanges([_chunk(1)]))
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'chunks'")
    raw.execute("PRAGMA writable_schema = RESET")
    raw.execute("UPDATE chunks SET start_char = 'far away'")
    with pytest.raises(UnreadableRowError):
        table.stored(7)

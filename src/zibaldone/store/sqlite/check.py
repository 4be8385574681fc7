"""A look at the whole file: is it sound, and do its tables agree with each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from zibaldone.errors import StorageCorrupt
from zibaldone.model.document import content_hash
from zibaldone.store import statements
from zibaldone.store.port import StoreCheck
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import file_errors

_SQL = statements.load("zibaldone.store.sqlite", "check.sql")

_EXAMPLES_MAX = 5
_PROBLEMS_MAX = 20

_FAULTS = {
    "documents_without_body": "Documents without a body",
    "documents_with_broken_history": "Documents with a gap in their history",
    "deleted_documents_with_chunks": "Deleted documents that a search would still find",
    "chunks_without_terms": "Chunks missing from the keyword index",
    "terms_without_chunk": "Entries of the keyword index without a chunk",
    "vectors_without_chunk": "Vectors without a chunk",
}
"""Statements that find something only when tables disagree, and what that is."""


def check_file(path: Path, wait_seconds_max: float, thorough: bool) -> StoreCheck:
    """Quick: the structure of the file. Thorough: every page, index entry, table and body too."""
    problems: list[str] = []
    with file_errors(path):
        facts = {"file": path.name, "bytes": path.stat().st_size}
    connection = Connection(path, wait_seconds_max=wait_seconds_max)
    try:
        with connection.translated():
            facts["schema"] = connection.raw.execute("PRAGMA user_version").get
            for problem in _problems(connection.raw, thorough):
                problems.append(problem)
                if len(problems) == _PROBLEMS_MAX:
                    break
    except StorageCorrupt as error:
        problems.append(error.message)
    finally:
        connection.close()
    return StoreCheck(not problems, f"sqlite {apsw.sqlite_lib_version()}", tuple(problems), facts)


def _problems(raw: apsw.Connection, thorough: bool) -> Iterator[str]:
    pragma = "integrity_check" if thorough else "quick_check"
    for (line,) in raw.execute(f"PRAGMA {pragma}({_PROBLEMS_MAX})"):
        if line != "ok":
            yield str(line)
    if not thorough:
        return
    for table, row, parent, _ in raw.execute("PRAGMA foreign_key_check"):
        yield f"Row {row} of {table} belongs to no row of {parent}."
    for name, what in _FAULTS.items():
        examples = [str(value) for (value,) in raw.execute(_SQL[name], {"limit": _EXAMPLES_MAX})]
        if examples:
            yield f"{what}: {', '.join(examples)}."
    for document_id, digest, body in raw.execute(_SQL["bodies"]):
        if not isinstance(body, str) or content_hash(body) != digest:
            yield f"The body of {document_id!r} is not the one that was written."

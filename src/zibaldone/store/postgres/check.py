"""A look at the whole database: do its tables agree with each other, and are its indexes sound."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from zibaldone.model.document import content_hash
from zibaldone.store import statements
from zibaldone.store.port import StoreCheck
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "check.sql")

_EXAMPLES_MAX = 5
_PROBLEMS_MAX = 20
_BODIES_PAGE = 200

_QUICK_FAULTS = {
    "invalid_indexes": "Indexes whose build was cut short (DROP INDEX, then start Zibaldone again)",
}
_FAULTS = {
    "documents_without_body": "Documents without a body",
    "documents_with_broken_history": "Documents with a gap in their history",
    "deleted_documents_with_chunks": "Deleted documents that a search would still find",
    "strayed_rows": "Documents with parts in another namespace",
    "chunks_without_terms": "Chunks missing from the keyword index",
    "terms_without_chunk": "Entries of the keyword index without a chunk",
    "terms_without_posting": "Chunks that keyword searches do not find",
    "postings_without_segment": "Segments of the keyword index that are not listed",
    "miscounted": "Chunks are miscounted in the keyword index",
    "vectors_without_chunk": "Vectors without a chunk",
}
"""Statements that find something only when tables disagree, and what that is."""


def check_tables(transaction: Transaction, thorough: bool) -> StoreCheck:
    """Quick: what the catalogue says. Thorough: every table and body too."""
    database, size_bytes, schema, version = transaction.row(_SQL["facts"]) or ("", 0, 0, "")
    facts = {"database": database, "bytes": size_bytes, "schema": schema}
    problems = tuple(islice(_problems(transaction, thorough), _PROBLEMS_MAX))
    return StoreCheck(not problems, f"postgresql {version}", problems, facts)


def _problems(transaction: Transaction, thorough: bool) -> Iterator[str]:
    faults = {**_QUICK_FAULTS, **(_FAULTS if thorough else {})}
    for name, what in faults.items():
        examples = transaction.execute(_SQL[name], {"limit": _EXAMPLES_MAX})
        if examples:
            yield f"{what}: {', '.join(str(value) for (value,) in examples)}."
    if thorough:
        yield from _damaged_bodies(transaction)


def _damaged_bodies(transaction: Transaction) -> Iterator[str]:
    after = 0
    while page := transaction.execute(_SQL["bodies"], {"after": after, "limit": _BODIES_PAGE}):
        for after, document_id, digest, body in page:  # noqa: B007
            if content_hash(body) != digest:
                yield f"The body of {document_id!r} is not the one that was written."

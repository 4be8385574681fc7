"""What a write locks until it ends, each lock in a statement of its own.

That is for a reason: a statement sees what was committed when it began. Whatever it had to wait for
is seen by the next one only. Locks are deferred, so they travel with the statement that needs them.

Rows are locked where they exist. Everything else is a lock of the transaction under a name
(PostgreSQL calls it advisory): an id that nobody has inserted yet, and what must not be a row that
every write touches. Nothing is locked for a session: behind a pooler there is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.access.principal import Tenant
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "locks.sql")


def lock_id(transaction: Transaction, tenant: Tenant, document_id: str) -> None:
    """Nobody else inserts or replaces a document of this id, whether it exists or not."""
    values = {"namespace": tenant.namespace, "document_id": document_id}
    transaction.lock_once(("id", document_id), _SQL["id"], values)


def lock_documents(transaction: Transaction, document_keys: Iterable[int]) -> None:
    """Documents by their storage keys."""
    keys = sorted(document_keys)
    transaction.lock_once(("documents", *keys), _SQL["documents"], {"document_keys": keys})


def lock_source(transaction: Transaction, source_id: int) -> None:
    """Nobody changes how the source is cut. Many may hold this lock."""
    transaction.lock_once(("source", source_id), _SQL["source"], {"source_id": source_id})


def lock_source_alone(transaction: Transaction, source_id: int) -> None:
    """Nobody writes a document of the source, nor changes how it is cut."""
    name = ("source alone", source_id)
    transaction.lock_once(name, _SQL["source_alone"], {"source_id": source_id})


def lock_source_names(transaction: Transaction) -> None:
    """Nobody else adds a source."""
    transaction.lock_once("source names", _SQL["source_names"])


def lock_usage(transaction: Transaction, namespace: str) -> None:
    """Nobody else adds to the namespace."""
    transaction.lock_once("usage", _SQL["usage"], {"namespace": namespace})


def lock_leases(transaction: Transaction, kind: str) -> None:
    """Nobody else takes jobs of the kind."""
    transaction.lock_once(("leases", kind), _SQL["leases"], {"kind": kind})


def lock_models(transaction: Transaction) -> None:
    """Nobody else claims the index for a model."""
    transaction.lock_once("models", _SQL["models"])


def try_folding(transaction: Transaction) -> bool:
    """False: somebody else is about it."""
    return bool(transaction.value(_SQL["try_folding"]))


def try_posting(transaction: Transaction) -> bool:
    """The same for the keyword index."""
    return bool(transaction.value(_SQL["try_posting"]))

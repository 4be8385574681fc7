"""Postings: for each term the chunks that have it, made in the background out of what writes left.

Chunks that are new are posted together, as a segment. Eight segments of about one size become one;
so each chunk is posted a few times only, and a search reads a few rows for each term. Chunks that
are gone stay in their segment until that is merged, or until they are many: searches leave them out
by themselves.
"""

from __future__ import annotations

from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction, settings_statement
from zibaldone.store.postgres.locks import try_posting

_SQL = statements.load("zibaldone.store.postgres", "postings.sql")

_POSTED_MAX = 4_096
"""Chunks in one transaction, which takes a second. Until it ends, searches of their namespace read
the terms of all of them. Eight such segments become one that is as large as it ever gets."""

_REMOVED_MAX = 10_000

_MANY = 8
_SEGMENT_CHUNKS_MAX = 32_768
"""Larger segments are not merged any more: a search reads a row of each for each of its terms, and
a merge would take minutes."""

_WASTE_MIN = 1_000

_SETTINGS = settings_statement({"work_mem": "64MB", "jit": "off"})
"""Terms are sorted, some three million at a time, by one process and for one transaction."""


def post(transaction: Transaction) -> bool:
    """Post what there is, unless another process is about it. True: it was too much for once.

    What is written meanwhile does not count: where somebody keeps writing, there would be no end,
    and a segment for every few chunks.
    """
    if not try_posting(transaction):
        return False
    transaction.defer(*_SETTINGS)
    limits = {"posted_max": _POSTED_MAX, "removed_max": _REMOVED_MAX}
    is_too_much = bool(transaction.value(_SQL["is_too_much"], limits))
    transaction.defer(_SQL["post"], {"limit": _POSTED_MAX})
    transaction.execute(_SQL["subtract"], {"limit": _REMOVED_MAX})
    return is_too_much


def has_more(transaction: Transaction) -> bool:
    """Is there something to post, whoever is about it?"""
    return bool(transaction.value(_SQL["has_more"]))


def renew(transaction: Transaction) -> bool:
    """Let new terms of chunks take the place of the old, segment by segment. True: more to do."""
    if not try_posting(transaction):
        return False
    transaction.defer(*_SETTINGS)
    segment = transaction.value(_SQL["renewable"])
    if segment is None:
        transaction.execute(_SQL["forget_gone"])
        return False
    values = {"segment": segment}
    for statement in ("hold", "recount", "renew"):
        transaction.execute(_SQL[statement], values)
    transaction.execute(_SQL["merge"], {"segments": [segment]})
    return True


def tidy(transaction: Transaction) -> bool:
    """Merge some segments, or take out what is gone. True: there may be more to do."""
    if not try_posting(transaction):
        return False
    transaction.defer(*_SETTINGS)
    segments = transaction.value(
        _SQL["mergeable"], {"many": _MANY, "chunks_max": _SEGMENT_CHUNKS_MAX}
    )
    if segments:
        transaction.execute(_SQL["merge"], {"segments": segments})
        return True
    namespace = transaction.value(_SQL["wasteful"], {"chunks_min": _WASTE_MIN})
    if namespace is None:
        return False
    values = {"namespace": namespace}
    stale = transaction.value(_SQL["stale_segment"], values)
    if stale is None:
        transaction.execute(_SQL["forget_waste"], values)
    else:
        transaction.execute(_SQL["merge"], {"segments": [stale]})
    return True

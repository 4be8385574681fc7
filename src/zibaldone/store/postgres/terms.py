"""The keyword index as writes see it: the terms of chunks that come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zibaldone.model.chunk import ChunkTerms
from zibaldone.store.postgres.connection import Transaction


def add_terms(transaction: Transaction, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by their terms, by chunk key."""
    del transaction, terms


def remove_terms(transaction: Transaction, chunk_keys: Sequence[int]) -> None:
    """Chunks are about to be removed."""
    del transaction, chunk_keys

"""The background work of the keyword index, done now."""

from __future__ import annotations

from typing import cast

from zibaldone.store.port import Store
from zibaldone.store.postgres import scopes
from zibaldone.store.postgres.postings import post, renew, tidy
from zibaldone.store.postgres.store import PostgresStore


def post_all(store: Store) -> None:
    """Until there is nothing left to post or to merge."""
    writers = cast("PostgresStore", store)._writers
    for step in (post, renew, tidy):
        while writers.run_here(step, scopes.OF_UPKEEP):
            pass


def stop_posting(store: Store) -> None:
    """Nothing is posted any more, unless a test asks for it."""
    cast("PostgresStore", store)._folding.close()

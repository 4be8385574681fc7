"""Making the terms of chunks anew after the way they are made was changed, while servers run.

Until a chunk has its new terms, it is found by the old ones. How terms are made, by TERMS_VERSION:

    1    texts in other languages than English have the stems of their language (`text.language`)
"""

from __future__ import annotations

import asyncio
import logging

from zibaldone.limits import RENEWAL_CHUNKS, RENEWAL_PAUSE_SECONDS
from zibaldone.model.chunk import ChunkTerms
from zibaldone.store.port import Store
from zibaldone.store.upkeep import TermProgress, TermSource, Upkeep
from zibaldone.text.terms import chunk_terms, has_own_stems

TERMS_VERSION = 1

_log = logging.getLogger("zibaldone.index")


async def renew_terms(store: Store) -> None:
    """Go on where the last run ended. Several processes may do so at once: one of them gets on."""
    progress = await _progress(store)
    if progress.version < TERMS_VERSION:
        await store.upkeep(lambda work: work.terms.begin(TERMS_VERSION))
        progress = await _progress(store)
    renewed = 0
    while progress.version == TERMS_VERSION and progress.through is not None:
        renewed += await _renew_page(store, progress.through, progress.last)
        await asyncio.sleep(RENEWAL_PAUSE_SECONDS)
        progress = await _progress(store)
    if renewed:
        _log.info("the keyword index was brought up to date: %d chunks have new terms", renewed)


async def _progress(store: Store) -> TermProgress:
    return await store.upkeep(lambda work: work.terms.progress(), write=False)


async def _renew_page(store: Store, before: int, last: int) -> int:
    page = await store.upkeep(
        lambda work: work.terms.page(before, last, RENEWAL_CHUNKS), write=False
    )
    terms = await asyncio.to_thread(_new_terms, page)
    through = page[-1].chunk_key if page else None

    def put(work: Upkeep) -> bool:
        return work.terms.put(terms, version=TERMS_VERSION, before=before, through=through)

    return len(terms) if await store.upkeep(put) else 0


def _new_terms(page: list[TermSource]) -> dict[int, ChunkTerms]:
    """Of those that have others than before."""
    made = ((c.chunk_key, chunk_terms(c.title, c.heading, c.text)) for c in page)
    return {key: terms for key, terms in made if has_own_stems(terms)}

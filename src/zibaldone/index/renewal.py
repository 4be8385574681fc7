"""Making terms of chunks in the background: of those for which a process did not get so far before
it ended, and of all after the way terms are made was changed.

Until a chunk has its new terms, it is found by the old ones. How terms are made, by TERMS_VERSION:

    1    texts in other languages than English have the stems of their language (`text.language`)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from zibaldone.limits import (
    RENEWAL_CHUNKS,
    RENEWAL_PAUSE_SECONDS,
    TERM_STEP_CHUNKS,
    TERMS_LEFT_SECONDS,
)
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


async def settle_terms(store: Store) -> None:
    """Until cancelled: store the terms that long changes have left for later and nobody stores.

    What is left when it begins counts as such, and then what is still there after a while.
    """
    last = await last_left(store)
    while True:
        await settle_left(store, last)
        last = await last_left(store)
        await asyncio.sleep(TERMS_LEFT_SECONDS)


async def last_left(store: Store) -> int | None:
    return await store.upkeep(lambda work: work.terms.last_unsettled(), write=False)


async def settle_left(store: Store, last: int | None) -> None:
    """Store the terms that were left, up to this key. Further ones may come all the time."""
    if last is None:
        return
    settled = 0
    while page := await store.upkeep(
        lambda work: work.terms.unsettled(last, TERM_STEP_CHUNKS), write=False
    ):
        terms = await asyncio.to_thread(_terms_or_none, page)
        await store.upkeep(partial(_settle, terms))
        settled += len(page)
        await asyncio.sleep(RENEWAL_PAUSE_SECONDS)
    if settled:
        _log.info("the terms of %d chunks that were left for later are stored", settled)


def _settle(terms: Mapping[int, ChunkTerms | None], work: Upkeep) -> None:
    work.terms.settle(terms)


def _terms_or_none(page: list[tuple[int, TermSource | None]]) -> dict[int, ChunkTerms | None]:
    return {key: None if source is None else _terms(source) for key, source in page}


def _terms(source: TermSource) -> ChunkTerms:
    return chunk_terms(source.title, source.heading, source.text)


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
    made = ((source.chunk_key, _terms(source)) for source in page)
    return {key: terms for key, terms in made if has_own_stems(terms)}

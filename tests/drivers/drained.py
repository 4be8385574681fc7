"""A store and the worker on it, driven step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.drivers.embedders import PATIENCE_SECONDS
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.embed.port import Embedder
from zibaldone.errors import EmbeddingFailed
from zibaldone.index import sweep
from zibaldone.index.worker import Batch, IndexWorker

BAD = EmbeddingFailed("The model cannot read this.")


def drain(kept: Kept, embedder: Embedder, **more: Any) -> Batch:
    return asyncio.run(IndexWorker(kept.store, embedder, **more).drain())


def enqueue_missing(kept: Kept, embedder: Embedder) -> int:
    async def enqueue() -> int:
        indexing = IndexWorker(kept.store, embedder)
        return await sweep.enqueue_missing(kept.store, await indexing.model_id())

    return asyncio.run(enqueue())


def status(kept: Kept, path: str) -> str:
    """Also where an event loop runs: it is asked from another thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(kept.known, path).result().vector_status


def paragraphs(count: int) -> list[str]:
    """Each long enough to be a passage of its own."""
    return [
        f"Paragraph {number}. " + f"The word number{number} stands here, among others. " * 20
        for number in range(count)
    ]


def passages(tables: Backend) -> int:
    ((count,),) = tables.query("SELECT count(*) FROM chunks")
    return int(count)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 - it is another thread that makes it so
            await asyncio.sleep(0.01)

"""Vectors for the chunks of several documents: one call, and each failure where it belongs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import EmbedderUnavailable, EmbeddingFailed, ZibaldoneError
from zibaldone.index import metrics
from zibaldone.limits import INDEX_ERROR_CHARS_MAX
from zibaldone.model.vector import np
from zibaldone.store.upkeep import ChunkText, DocumentState, Upkeep
from zibaldone.text.title import title_beside

_log = logging.getLogger("zibaldone.index")


@dataclass(frozen=True, slots=True)
class Task:
    """Chunks of one document to embed; there may be none."""

    state: DocumentState
    chunks: Sequence[ChunkText]

    def texts(self) -> list[str]:
        return [embedded_text(self.state.title, chunk) for chunk in self.chunks]


@dataclass(frozen=True, slots=True)
class Embedded:
    task: Task
    vectors: Vectors | None = None
    """One for each chunk; None if there was no chunk, or it failed."""
    error: str | None = None
    unavailable: bool = False
    """The model is unavailable; it is not the document's fault."""
    wait_seconds: float = 0.0
    """How long the model asked to be left alone."""


def embedded_text(title: str, chunk: ChunkText) -> str:
    """A chunk alone often does not say what it is about; its title and headings do."""
    said = (title_beside(title, chunk.body), chunk.heading, chunk.body)
    return "\n".join(part for part in said if part)


async def embed(embedder: Embedder, tasks: Sequence[Task]) -> list[Embedded]:
    """Vectors for each task, or why not. One bad document does not spoil its neighbours."""
    texts = [text for task in tasks for text in task.texts()]
    if not texts:
        return [Embedded(task) for task in tasks]
    try:
        vectors = await asyncio.wrap_future(_begin(embedder, texts))
    except EmbedderUnavailable as error:  # for everybody: asking again for each would not help
        return [_failed(task, error.message, error) for task in tasks]
    except Exception as problem:
        if len(tasks) > 1:
            return [outcome for task in tasks for outcome in await embed(embedder, [task])]
        return [_failed(tasks[0], _reason(problem))]
    metrics.embedded(len(texts))
    outcomes, start = [], 0
    for task in tasks:
        end = start + len(task.chunks)
        outcomes.append(Embedded(task, vectors[start:end] if task.chunks else None))
        start = end
    return outcomes


def keep_vectors(work: Upkeep, model_id: int, outcomes: Iterable[Embedded]) -> None:
    keys: list[int] = []
    arrays: list[Vectors] = []
    for outcome in outcomes:
        if outcome.vectors is not None:
            keys += (chunk.chunk_key for chunk in outcome.task.chunks)
            arrays.append(outcome.vectors)
    if arrays:
        work.vectors.put(model_id, keys, np.concatenate(arrays))


def _begin(embedder: Embedder, texts: Sequence[str]) -> Future[Vectors]:
    """In a daemon thread: a server does not wait, at its end, for a model that hangs."""
    future: Future[Vectors] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(_checked(embedder, texts))
        except BaseException as problem:  # whoever waits for it raises it again
            future.set_exception(problem)

    threading.Thread(target=run, name="zibaldone-index", daemon=True).start()
    return future


def _checked(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    vectors = embedder.embed(texts)
    if vectors.shape != (len(texts), embedder.dimensions):
        raise EmbeddingFailed(
            f"{embedder.name} gave vectors of shape {vectors.shape} for {len(texts)} texts."
        )
    return vectors


def _reason(problem: Exception) -> str:
    if isinstance(problem, ZibaldoneError):
        return problem.message
    _log.error("the embedding model failed", exc_info=problem)
    return f"The embedding model failed ({type(problem).__name__}); the server's log has more."


def _failed(task: Task, reason: str, unavailable: EmbedderUnavailable | None = None) -> Embedded:
    if not task.chunks:
        return Embedded(task)
    details = {} if unavailable is None else unavailable.details
    return Embedded(
        task,
        error=reason[:INDEX_ERROR_CHARS_MAX],
        unavailable=unavailable is not None,
        wait_seconds=float(details.get("retry_after_seconds", 0.0)),
    )

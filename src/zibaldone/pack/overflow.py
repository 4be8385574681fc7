"""A searchable index of the files that do not fit into a prompt. It lives for one call.

Keyword search works as soon as the index is built. Vectors are made for what a search found and,
while the assistant thinks, for the rest; those of unchanged chunks come from the cache.

Nothing outlives the call, whichever way it ends: threads are told to stop and waited for, and
`STORES` counts what was made and destroyed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from zibaldone.access.share import SHARE
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import LimitExceeded, ZibaldoneError
from zibaldone.limits import (
    OVERFLOW_BUILDS,
    OVERFLOW_BUILDS_EXTRA,
    OVERFLOW_CLOSE_SECONDS_MAX,
    OVERFLOW_EMBED_BATCH,
    OVERFLOW_QUERY_SECONDS_MAX,
    OVERFLOW_SEARCH_EMBEDS_MAX,
    OVERFLOW_SEARCH_SECONDS_MAX,
    OVERFLOW_TEXT_CHARS_MAX,
    PACK_STORE_FILES_MAX,
)
from zibaldone.pack.code_ranking import VECTOR_SHARE, read_query
from zibaldone.pack.file_index import (
    FileIndex,
    FoundChunk,
    IndexableFile,
    KeywordScores,
    Stopped,
)
from zibaldone.pack.reading import check_search, file_number, read_lines
from zibaldone.pack.stores import STORES
from zibaldone.pack.vector_cache import VectorCache, packed, vector_keys

__all__ = ["STORES", "EphemeralIndex", "FoundChunk", "IndexableFile", "ephemeral_index"]

_log = logging.getLogger("zibaldone.pack")

T = TypeVar("T")

_TURNS = TaskTurns(Turns(OVERFLOW_BUILDS, extra=OVERFLOW_BUILDS_EXTRA))
"""Building and embedding take turns by share, a piece at a time."""

_FILLING = "fill"

NO_MODEL = "There is no embedding model."
UNKNOWN_LANGUAGE = "The embedding model does not know this script."
SLOW = "The embedding model was too slow for some of the files."
FAILED = "The embedding model failed."


@asynccontextmanager
async def ephemeral_index(
    files: Sequence[IndexableFile], *, embedder: Embedder | None, cache: VectorCache, share: str
) -> AsyncIterator[EphemeralIndex]:
    """An index of files until the end of the block. `share` is the key of the caller."""
    if len(files) > PACK_STORE_FILES_MAX:
        raise LimitExceeded(
            f"{len(files)} files would have to be searched; {PACK_STORE_FILES_MAX} are allowed. "
            "Name fewer or smaller folders in context and attachments, or ignore some with "
            ".zibaldoneignore.",
            files=len(files),
            files_max=PACK_STORE_FILES_MAX,
        )
    STORES.count_made("memory")
    index = EphemeralIndex(embedder, cache, share)
    try:
        await index.build(files)
        yield index
    finally:
        try:
            await index.close()
        finally:
            index.forget()
            STORES.count_destroyed("memory")


class EphemeralIndex:
    """Made by `ephemeral_index`. Everything that takes long runs in threads of its own."""

    def __init__(self, embedder: Embedder | None, cache: VectorCache, share: str) -> None:
        self._embedder = embedder
        self._cache = cache
        self._share = share
        self._context = copy_context()
        self._context.run(SHARE.set, share)
        self._index = FileIndex("" if embedder is None else embedder.identity)
        self._stopping = threading.Event()
        self._running: dict[Future[Any], threading.Thread] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._searching = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._query_vectors: dict[str, Vectors] = {}
        self._found: deque[int] = deque()
        self._filled = 0
        self.vectors_missing: str | None = None if embedder else NO_MODEL
        """Why the last search went without vectors, or without some; None: it had them."""
        self.embedded = 0
        """Texts that were embedded for this index; the others came from the cache."""

    @property
    def files(self) -> Sequence[str]:
        """The paths in the index."""
        return [file.path for file in self._index.files]

    @property
    def unreadable(self) -> dict[str, str]:
        """Paths that could not be read when the index was built, with the reason."""
        return dict(self._index.unreadable)

    @property
    def is_filled(self) -> bool:
        """Nothing is left to embed, or nothing can be."""
        return not any(task.get_name() == _FILLING for task in self._tasks)

    async def search(self, query: str, k: int) -> list[FoundChunk]:
        """The best chunk of each of the best files, best first."""
        check_search(query, k)
        return await self._as_task(self._search(query, k))

    async def read(
        self, path: str, from_line: int | None = None, to_line: int | None = None
    ) -> str:
        """Lines of a file, counted from 1, or all of it; a last line says if more follow."""
        file = self._index.files[file_number(path, self._index.numbers)]
        return await self._in_thread(lambda: read_lines(file, from_line, to_line))

    # ---- building

    async def build(self, files: Sequence[IndexableFile]) -> None:
        """Called once, by `ephemeral_index`, like the two that follow."""
        await self._as_task(self._take_turns_to_build(files))
        if self._embedder is not None and self._index.files:
            self._start(self._fill()).set_name(_FILLING)

    async def _take_turns_to_build(self, files: Sequence[IndexableFile]) -> None:
        async with _TURNS:
            await self._in_thread(lambda: self._build_blocking(files))

    def _build_blocking(self, files: Sequence[IndexableFile]) -> None:
        index, is_stopped = self._index, self._stopping.is_set
        for file in files:
            if is_stopped():
                raise Stopped
            index.add(file, is_stopped)
            if index.is_too_long:
                raise LimitExceeded(
                    f"The files to search have more than {OVERFLOW_TEXT_CHARS_MAX} characters. "
                    "Name fewer or smaller folders in context and attachments.",
                    chars_max=OVERFLOW_TEXT_CHARS_MAX,
                )
        if self._embedder is not None:
            known = self._cache.get(self._share, index.vector_keys)
            rows = [row for row, vector in enumerate(known) if vector is not None]
            index.put_vectors(rows, [vector for vector in known if vector is not None])

    # ---- searching

    async def _search(self, text: str, k: int) -> list[FoundChunk]:
        query = read_query(text)
        self._searching += 1
        self._is_idle.clear()  # what nobody waits for waits for this
        try:
            scores = await self._in_thread(lambda: self._index.keyword_scores(query))
            vector = await self._query_vector(text)
            if vector is not None:
                await self._embed_candidates(scores)
        finally:
            self._searching -= 1
            if not self._searching:
                self._is_idle.set()
        return await self._in_thread(lambda: self._ranked(scores, vector, k))

    def _ranked(self, scores: KeywordScores, vector: Vectors | None, k: int) -> list[FoundChunk]:
        share = 0.0
        if vector is not None and self._embedder is not None:
            share = VECTOR_SHARE * self._embedder.language_trust(scores.query.text)
        hits: list[FoundChunk] = []
        for number, score in self._index.ranked_files(scores, vector, share):
            chunk = self._index.chunk_to_show(number, scores, vector)
            if chunk >= 0:
                self._found.append(number)
                hits.append(self._index.chunk_text(chunk, round(score, 4)))
            if len(hits) == k:
                break
        return hits

    async def _query_vector(self, text: str) -> Vectors | None:
        """None, and why in `vectors_missing`, if there is none in time."""
        embedder = self._embedder
        if embedder is None:
            return None
        if not embedder.language_trust(text):
            self.vectors_missing = UNKNOWN_LANGUAGE
            return None
        if text in self._query_vectors:
            return self._query_vectors[text]
        try:
            async with asyncio.timeout(OVERFLOW_QUERY_SECONDS_MAX):
                vectors: Vectors = await self._in_thread(lambda: embedder.embed([text]))
        except TimeoutError:
            self.vectors_missing = SLOW
        except Exception as problem:
            self._note_failure(problem)
        else:
            self.vectors_missing = None
            vector: Vectors = vectors[0]
            self._query_vectors[text] = vector
            return vector
        return None

    async def _embed_candidates(self, scores: KeywordScores) -> None:
        limit = OVERFLOW_SEARCH_EMBEDS_MAX
        rows = await self._in_thread(lambda: self._index.cards_to_embed(scores, limit))
        try:
            async with asyncio.timeout(OVERFLOW_SEARCH_SECONDS_MAX):
                for start in range(0, len(rows), OVERFLOW_EMBED_BATCH):
                    await self._embed(rows[start : start + OVERFLOW_EMBED_BATCH])
        except TimeoutError:
            self.vectors_missing = SLOW
        except Exception as problem:
            self._note_failure(problem)

    # ---- vectors

    async def _fill(self) -> None:
        """Vectors of everything, while the assistant thinks. Ends with the index."""
        try:
            while batch := self._next_rows():
                await self._embed(batch, waits=True)
        except Exception as problem:
            self._note_failure(problem)

    def _next_rows(self) -> list[int]:
        """Cards, then the chunks of files that were found, then the others; empty at the end."""
        index = self._index
        rows: list[int] = []
        while len(rows) < OVERFLOW_EMBED_BATCH and self._filled < len(index.files):
            rows += index.without_vectors((index.row_at(self._filled),))
            self._filled += 1
        while len(rows) < OVERFLOW_EMBED_BATCH and self._found:
            missing = index.without_vectors(index.rows_of(self._found[0]))
            rows += missing[: OVERFLOW_EMBED_BATCH - len(rows)]
            if len(missing) <= OVERFLOW_EMBED_BATCH:
                self._found.popleft()
            else:
                break
        while len(rows) < OVERFLOW_EMBED_BATCH and self._filled < index.row_count:
            rows += index.without_vectors((index.row_at(self._filled),))
            self._filled += 1
        return list(dict.fromkeys(rows))

    async def _embed(self, rows: Sequence[int], *, waits: bool = False) -> None:
        """`waits`: for searches, which somebody waits for."""
        embedder = self._embedder
        if not rows or embedder is None:
            return
        if waits:
            await self._is_idle.wait()
        async with _TURNS:
            await self._in_thread(lambda: self._embed_blocking(embedder, rows))

    def _embed_blocking(self, embedder: Embedder, rows: Sequence[int]) -> None:
        if self._stopping.is_set():
            return
        texts = self._index.texts_of(rows)
        keys = vector_keys(embedder.identity, texts)
        known = dict(zip(keys, self._cache.get(self._share, keys), strict=True))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
        if missing:
            made = packed(embedder.embed(list(missing.values())))
            self.embedded += len(made)
            self._cache.put(self._share, list(missing), made)
            known.update(zip(missing, made, strict=True))
        if not self._stopping.is_set():
            self._index.put_vectors(rows, [known[key] or b"" for key in keys])

    def _note_failure(self, problem: Exception) -> None:
        if isinstance(problem, ZibaldoneError):
            self.vectors_missing = problem.message
        else:
            _log.error("the embedding model failed", exc_info=problem)
            self.vectors_missing = FAILED

    # ---- threads and the end

    async def _as_task(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in a task with the share of the caller; it ends with whoever waits for it."""
        task = self._start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """In a daemon thread: a process does not wait, at its end, for a model that hangs."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as problem:  # whoever waits for it raises it again
                future.set_exception(problem)
            finally:
                self._running.pop(future, None)

        thread = threading.Thread(target=run, name="zibaldone-overflow", daemon=True)
        self._running[future] = thread
        thread.start()
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Stop what runs, and wait for it, but not for a model that hangs."""
        self._stopping.set()
        for task in tuple(self._tasks):
            task.cancel()
        threads = tuple(self._running.items())
        waited = [*self._tasks, *(asyncio.wrap_future(future) for future, _ in threads)]
        if waited:
            ended, _ = await asyncio.wait(waited, timeout=OVERFLOW_CLOSE_SECONDS_MAX)
            for one in ended:
                if not one.cancelled():
                    one.exception()  # whoever waited for it has it already
        for future, thread in threads:
            if future.done():
                thread.join()  # it has nothing left to do

    def forget(self) -> None:
        self._stopping.set()
        for task in tuple(self._tasks):
            task.cancel()
        self._index = FileIndex("")
        self._query_vectors.clear()

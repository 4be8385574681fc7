"""The files of one call in OpenAI's hosted vector store, in place of an index in memory.

Nothing of a call stays there: the store and each uploaded file are deleted when the call ends,
whichever way it does. What a crash left behind has a recognisable name, is deleted by
`sweep_leftovers`, and expires by itself after a day.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import orjson

from zibaldone import extras
from zibaldone.consult.providers import failures
from zibaldone.consult.providers.open import OPENAI_URL, key_of
from zibaldone.errors import LimitExceeded, ZibaldoneError
from zibaldone.limits import (
    HOSTED_ANSWER_BYTES_MAX,
    HOSTED_BATCH_FILES,
    HOSTED_CLOSE_SECONDS_MAX,
    HOSTED_LEFTOVER_SECONDS,
    HOSTED_PAUSE_SECONDS,
    HOSTED_READY_SECONDS_MAX,
    HOSTED_REQUEST_SECONDS_MAX,
    HOSTED_REQUESTS,
    HOSTED_SWEEP_PAGES_MAX,
    HOSTED_TRIES_MAX,
    PACK_STORE_FILES_MAX,
    PROVIDER_CONNECT_SECONDS_MAX,
    PROVIDER_RETRY_AFTER_SECONDS_MAX,
)
from zibaldone.model.assistant import Assistant
from zibaldone.pack.file_index import FoundChunk, IndexableFile
from zibaldone.pack.reading import check_search, file_number, read_lines
from zibaldone.pack.stores import STORES

__all__ = ["HostedIndex", "hosted_index", "sweep_leftovers"]

_log = logging.getLogger("zibaldone.consult")

T = TypeVar("T")

_PREFIX = "zibaldone-call-until-"
_NAME = re.compile(rf"{_PREFIX}(?P<until>\d{{1,12}})-[0-9a-f]{{8}}")
"""Of a store and of its files: when the call is over for certain, and at random."""
_PAGE = 100
_HITS_MAX = 50
_EXPIRES = {"anchor": "last_active_at", "days": 1}


@asynccontextmanager
async def hosted_index(
    files: Sequence[IndexableFile], *, assistant: Assistant, environment: Mapping[str, str]
) -> AsyncIterator[HostedIndex]:
    """A hosted store of files until the end of the block, with the surface of EphemeralIndex."""
    if len(files) > PACK_STORE_FILES_MAX:
        raise LimitExceeded(
            f"{len(files)} files would have to be searched; {PACK_STORE_FILES_MAX} are allowed. "
            "Name fewer or smaller folders in context and attachments.",
            files=len(files),
            files_max=PACK_STORE_FILES_MAX,
        )
    client = _Client(assistant, key_of(assistant, environment))
    index = HostedIndex(files, client)
    STORES.count_made("hosted")
    try:
        await index.build()
        yield index
    finally:
        await _to_the_end(_end(index, client))


async def _end(index: HostedIndex, client: _Client) -> None:
    try:
        async with asyncio.timeout(HOSTED_CLOSE_SECONDS_MAX):
            await index.delete()
        STORES.count_destroyed("hosted")
    except (TimeoutError, ZibaldoneError) as problem:
        # It stays in the count of open ones until somebody looks; the next start deletes it.
        _log.warning(
            "the hosted store %s could not be deleted and will be swept: %s", index.name, problem
        )
    finally:
        await client.close()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work even if the task is cancelled meanwhile, then be cancelled."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def sweep_leftovers(assistant: Assistant, environment: Mapping[str, str]) -> int:
    """Delete stores and files of calls that are over; how many. For the start of a server.

    Calls that may still run are left alone: they may belong to another process.
    """
    client = _Client(assistant, key_of(assistant, environment))
    try:
        swept = 0
        for path, name_field in (("/vector_stores", "name"), ("/files", "filename")):
            async for item in client.pages(path):
                if _is_leftover(item.get(name_field)):
                    swept += await client.delete(f"{path}/{item['id']}")
        return swept
    finally:
        await client.close()


def _is_leftover(name: object) -> bool:
    found = _NAME.match(name) if isinstance(name, str) else None
    return found is not None and time.time() > int(found["until"])


class HostedIndex:
    """Made by `hosted_index`."""

    def __init__(self, files: Sequence[IndexableFile], client: _Client) -> None:
        until = time.time() + client.assistant.seconds_max + HOSTED_LEFTOVER_SECONDS
        self.name = f"{_PREFIX}{int(until)}-{secrets.token_hex(4)}"
        self._client = client
        self._files = list({file.path: file for file in files}.values())
        self._numbers = {file.path: number for number, file in enumerate(self._files)}
        self._uploading: set[asyncio.Task[None]] = set()
        self._hosted: dict[str, int] = {}
        """Ids of uploaded files, and which file each is."""
        self._store = ""
        self._creating: asyncio.Task[Any] | None = None
        self.unreadable: dict[str, str] = {}
        """Paths that could not be read or were refused, with the reason."""
        self.vectors_missing: str | None = None

    @property
    def files(self) -> Sequence[str]:
        return [file.path for file in self._files]

    async def build(self) -> None:
        """Upload the files and wait until they can be searched."""
        places = asyncio.Semaphore(HOSTED_REQUESTS)

        async def upload(number: int) -> None:
            async with places:
                await self._upload(number)

        # Requests under way are not cancelled: the id of what they make would be lost.
        self._uploading = {asyncio.create_task(upload(n)) for n in range(len(self._files))}
        if self._uploading:
            done, _ = await asyncio.wait(self._uploading, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        if not self._hosted:
            return
        body = {"name": self.name, "expires_after": _EXPIRES}
        self._creating = asyncio.create_task(self._client.post("/vector_stores", body))
        self._store = (await asyncio.shield(self._creating))["id"]
        await self._fill()

    async def _upload(self, number: int) -> None:
        file = self._files[number]
        try:
            text = await asyncio.to_thread(file.load)
        except (OSError, ValueError) as problem:
            self.unreadable[file.path] = str(problem)
            return
        if not text.strip():
            return  # the provider refuses empty files
        name = f"{self.name}-{number}.txt"
        hosted = await self._client.upload(name, text.encode(errors="replace"))
        self._hosted[hosted["id"]] = number

    async def _fill(self) -> None:
        ids = list(self._hosted)
        deadline_s = time.monotonic() + HOSTED_READY_SECONDS_MAX
        for start in range(0, len(ids), HOSTED_BATCH_FILES):
            part = ids[start : start + HOSTED_BATCH_FILES]
            path = f"/vector_stores/{self._store}/file_batches"
            batch = await self._client.post(path, {"file_ids": part})
            while batch.get("status") == "in_progress":
                if time.monotonic() > deadline_s:
                    raise failures.unavailable(
                        self._client.assistant, "took too long to index the files"
                    )
                await asyncio.sleep(HOSTED_PAUSE_SECONDS)
                batch = await self._client.get(f"{path}/{batch['id']}")

    async def search(self, query: str, k: int) -> list[FoundChunk]:
        """The best chunk of each of the best files, best first."""
        check_search(query, k)
        if not self._store:
            return []
        # Several chunks of one file count once, so more are asked for.
        body = {"query": query, "max_num_results": min(4 * k, _HITS_MAX)}
        answer = await self._client.post(f"/vector_stores/{self._store}/search", body)
        hits: dict[int, FoundChunk] = {}
        for hit in answer.get("data", ()):
            number = self._hosted.get(hit.get("file_id"))
            text = "".join(part.get("text", "") for part in hit.get("content", ()))
            if number is not None and number not in hits and len(hits) < k:
                score = round(float(hit.get("score", 0.0)), 4)
                hits[number] = await asyncio.to_thread(
                    _found_chunk, self._files[number], text, score
                )
        return list(hits.values())

    async def read(
        self, path: str, from_line: int | None = None, to_line: int | None = None
    ) -> str:
        """Lines of a file on this machine, as EphemeralIndex.read."""
        number = file_number(path, self._numbers)
        return await asyncio.to_thread(read_lines, self._files[number], from_line, to_line)

    async def delete(self) -> None:
        """Delete everything that was made. Called by `hosted_index`."""
        waiting = [task for task in self._uploading if not task.done()]
        for task in waiting:
            task.cancel()  # ends those that only wait; `_Client` finishes what it has begun
        begun = [*waiting, *filter(None, (self._creating,))]
        if begun:
            await asyncio.wait(begun)
        for task in self._uploading:
            if not task.cancelled():
                task.exception()  # the first one was raised
        if self._creating and not self._store and not self._creating.cancelled():
            with suppress(ZibaldoneError):
                self._store = self._creating.result()["id"]
        if self._store:
            await self._client.delete(f"/vector_stores/{self._store}")
        ids = [*{*self._hosted, *self._client.uploaded}]
        for start in range(0, len(ids), HOSTED_REQUESTS):
            part = ids[start : start + HOSTED_REQUESTS]
            await asyncio.gather(*(self._client.delete(f"/files/{one}") for one in part))


def _found_chunk(file: IndexableFile, text: str, score: float) -> FoundChunk:
    """The provider says nothing of lines: they are looked for in the file."""
    try:
        body = file.load()
    except (OSError, ValueError):
        body = ""
    place = max(body.find(text.strip()), 0)
    first = body.count("\n", 0, place) + 1
    return FoundChunk(file.path, first, first + text.strip().count("\n"), text, score)


class _Client:
    """Requests to the API of files and stores, bounded and retried."""

    def __init__(self, assistant: Assistant, key: str) -> None:
        self.assistant = assistant
        self._url = (assistant.base_url or OPENAI_URL).rstrip("/")
        self._key = key
        self._http: Any = None
        self._opening = asyncio.Lock()
        self.uploaded: set[str] = set()
        """Ids of files that were made, also for callers that did not wait for the answer."""

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return await self._ask("GET", path, params=query)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self._ask("POST", path, json=body)

    async def upload(self, name: str, content: bytes) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            hosted = await self._ask(
                "POST",
                "/files",
                data={"purpose": "assistants"},
                files={"file": (name, content, "text/plain")},
            )
            self.uploaded.add(hosted["id"])
            return hosted

        return await _begun_is_finished(ask)

    async def delete(self, path: str) -> bool:
        """False: it was not there any more."""
        answer = await self._ask("DELETE", path, missing_ok=True)
        return bool(answer)

    async def pages(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The items of a list as it is at first, page by page."""
        items: list[dict[str, Any]] = []
        after: dict[str, str | int] = {}
        for _ in range(HOSTED_SWEEP_PAGES_MAX):
            page = await self.get(path, limit=_PAGE, **after)
            items += page.get("data", ())
            if not page.get("has_more") or not page.get("last_id"):
                break
            after = {"after": page["last_id"]}
        for item in items:
            yield item

    async def _ask(
        self, method: str, path: str, *, missing_ok: bool = False, **content: Any
    ) -> dict[str, Any]:
        pause_s = HOSTED_PAUSE_SECONDS
        for attempt in range(1, HOSTED_TRIES_MAX + 1):
            answer, setback = await self._try(method, path, content, missing_ok=missing_ok)
            if setback is None:
                return answer
            wait_s = pause_s if setback.wait_seconds is None else setback.wait_seconds
            is_last = attempt == HOSTED_TRIES_MAX or wait_s > PROVIDER_RETRY_AFTER_SECONDS_MAX
            if is_last or not setback.is_passing:
                raise setback.error
            await asyncio.sleep(wait_s)
            pause_s *= 2
        raise AssertionError("the last try returns or raises")

    async def _try(
        self, method: str, path: str, content: dict[str, Any], *, missing_ok: bool
    ) -> tuple[dict[str, Any], failures.Setback | None]:
        async with self._opening:
            if self._http is None:
                self._http = await asyncio.to_thread(self._open)
        httpx = extras.require("consult", "httpx2")
        try:
            async with (
                asyncio.timeout(HOSTED_REQUEST_SECONDS_MAX),
                self._http.stream(method, self._url + path, **content) as response,
            ):
                body = await _bounded(response)
        except (TimeoutError, httpx.HTTPError) as problem:
            what = "did not answer in time" if isinstance(problem, TimeoutError) else "broke off"
            # An upload that was cut may have been made; it is swept by its name.
            return {}, failures.Setback(failures.unavailable(self.assistant, what), is_passing=True)
        if body is None:
            error = failures.unavailable(self.assistant, "sent an answer that cannot be read")
            return {}, failures.Setback(error)
        if response.status_code == 404 and missing_ok:
            return {}, None
        if response.is_success:
            return body, None
        said = failures.said_in(response.status_code, body, response.headers, self._key)
        return {}, failures.of_answer(said, self.assistant)

    def _open(self) -> Any:
        httpx = extras.require("consult", "httpx2")
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        return httpx.AsyncClient(
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx.Timeout(HOSTED_REQUEST_SECONDS_MAX, connect=PROVIDER_CONNECT_SECONDS_MAX),
            limits=httpx.Limits(max_connections=HOSTED_REQUESTS),
            follow_redirects=False,
        )


async def _bounded(response: Any) -> dict[str, Any] | None:
    """The JSON object of an answer; None if it is none, or too long."""
    received = bytearray()
    async for piece in response.aiter_raw():
        received += piece
        if len(received) > HOSTED_ANSWER_BYTES_MAX:
            return None
    try:
        body = orjson.loads(bytes(received) or b"{}")
    except ValueError:
        return {} if not response.is_success else None
    return body if isinstance(body, dict) else None


async def _begun_is_finished(ask: Callable[[], Awaitable[T]]) -> T:
    """Cancelled, it still waits for the answer: it says what has to be deleted."""
    task = asyncio.ensure_future(ask())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(ZibaldoneError):
            await task
        raise

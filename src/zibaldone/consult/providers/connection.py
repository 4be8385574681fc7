"""One connection to a provider through its own library: bounded, retried, with only our headers."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypeVar

from zibaldone import extras
from zibaldone.consult.providers import failures
from zibaldone.consult.providers.failures import Setback
from zibaldone.consult.providers.openai_responses import Failed
from zibaldone.consult.providers.port import Bounds, OnText
from zibaldone.consult.providers.values import Malformed, write_json
from zibaldone.errors import ProviderRefused, ProviderUnavailable, ZibaldoneError
from zibaldone.limits import (
    PROVIDER_ANSWER_BYTES_MIN,
    PROVIDER_ANSWER_BYTES_PER_TOKEN,
    PROVIDER_CONNECTIONS_MAX,
    PROVIDER_ERROR_BYTES_MAX,
    PROVIDER_INLINE_BYTES,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import ModelReply, ModelRequest

T = TypeVar("T")

_OK = 200
_PIECE_BYTES = 16 * 1024
"""Of a stream at a time; others are served between two pieces."""
_INVALID_STATUSES = (400, 422, 500)
"""llama.cpp answers 500 where a model's template does not take a conversation."""
_HEADERS = frozenset(
    {
        "accept",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
"""What is sent beside our key. The libraries would add headers that they find in the environment,
among them keys of other accounts."""
_NOT_TAKEN = re.compile(
    r"support|unknown|unrecogni|unexpected|extra|permitted|forbid|instead|alternate"
)
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")

_answer_bytes_max: ContextVar[int] = ContextVar("answer_bytes_max")
_left_out: dict[tuple[str, str, str], frozenset[str]] = {}
"""Optional fields that an endpoint has refused, by its URL, model and API."""


class Reading(Protocol):
    is_complete: bool

    def add(self, event: Any) -> str: ...

    def finish(self) -> ModelReply: ...


class Api(Protocol):
    """How a request is written for one API, and its answer read."""

    @property
    def path(self) -> str: ...

    @property
    def optional(self) -> dict[str, str]: ...

    def body(self, request: ModelRequest, left_out: frozenset[str]) -> dict[str, Any]: ...

    def reading(self, request: ModelRequest) -> Reading: ...


class AnswerTooLarge(Exception):
    pass


class Connection:
    """Made cheaply; the library is imported, in a thread, when the first request is sent."""

    def __init__(
        self, assistant: Assistant, url: str, key: str, bounds: Bounds, load: Callable[[], Any]
    ) -> None:
        self.assistant = assistant
        self.url = url
        self._key = key
        self._bounds = bounds
        self._load = load
        self._opening = asyncio.Lock()
        self._sdk: Any = None
        self._client: Any = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def sdk(self) -> Any:
        """The library; NotConfigured if it is not installed."""
        async with self._opening:
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._load)
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)
        return self._sdk

    def _open(self) -> Any:
        httpx = extras.require("consult", "httpx2")
        bounds = self._bounds
        timeout = httpx.Timeout(bounds.idle_seconds_max, connect=bounds.connect_seconds_max)
        is_openai = self.assistant.provider == "openai"
        make = self._sdk.AsyncOpenAI if is_openai else self._sdk.AsyncAnthropic
        options: dict[str, Any] = {} if is_openai else {"open_telemetry": False}
        return make(
            base_url=self.url,
            api_key=self._key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=self._sdk.DefaultAsyncHttpxClient(
                timeout=timeout,
                follow_redirects=False,
                limits=httpx.Limits(max_connections=PROVIDER_CONNECTIONS_MAX),
                event_hooks={"request": [self._keep_ours], "response": [self._bound]},
            ),
            **options,
        )

    async def _keep_ours(self, request: Any) -> None:
        for name in list(request.headers):
            if name.lower() not in _HEADERS:
                del request.headers[name]
        if self._key and self.assistant.provider == "anthropic":
            request.headers["x-api-key"] = self._key  # it refuses API keys as bearer tokens
        elif self._key:
            request.headers["authorization"] = f"Bearer {self._key}"
        request.headers["accept-encoding"] = "identity"

    async def _bound(self, response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise AnswerTooLarge("compressed")  # a small answer could become a large one
        bytes_max = _answer_bytes_max.get() if response.is_success else PROVIDER_ERROR_BYTES_MAX
        response.stream = _bounded_stream()(
            response.stream, bytes_max, self._bounds.event_bytes_max
        )

    async def has(self, path: str) -> bool:
        """Whether the server has an API, judged by its answer to an empty request."""
        sdk = await self.sdk()

        async def ask() -> bool:
            try:
                await self._client.post(
                    path,
                    content=b"{}",
                    cast_to=object,
                    options={"headers": {"content-type": "application/json"}},
                )
            except sdk.APIStatusError as error:
                if error.status_code in (401, 403):
                    raise
                if error.status_code in (404, 405, 501):
                    return False
                if error.status_code < 500 and error.status_code not in (408, 429):
                    return True
                raise
            return False  # no API takes an empty request; some servers answer everything with 200

        _answer_bytes_max.set(PROVIDER_ERROR_BYTES_MAX)
        try:
            async with asyncio.timeout(self.assistant.seconds_max):
                return await self._retried(ask, lambda: False)
        except TimeoutError:
            raise failures.unavailable(self.assistant, "took too long") from None

    async def send(
        self, api: Api, request: ModelRequest, on_text: OnText | None, *, hint: str = ""
    ) -> ModelReply:
        """The complete answer of the model."""
        await self.sdk()
        _answer_bytes_max.set(
            min(
                self._bounds.answer_bytes_max,
                PROVIDER_ANSWER_BYTES_MIN + PROVIDER_ANSWER_BYTES_PER_TOKEN * request.output_tokens,
            )
        )
        endpoint = (self.url, self.assistant.model, api.path)
        try:
            async with asyncio.timeout(self.assistant.seconds_max):
                while True:
                    left_out = _left_out.get(endpoint, frozenset())
                    try:
                        return await self._send(api, request, left_out, on_text, hint)
                    except (ProviderRefused, ProviderUnavailable) as refused:
                        more = _refused_fields(api, refused) - left_out
                        if not more:
                            raise
                        _left_out[endpoint] = left_out | more
        except TimeoutError:
            what = f"took longer than {self.assistant.seconds_max} s"
            raise failures.unavailable(self.assistant, what) from None

    async def _send(
        self,
        api: Api,
        request: ModelRequest,
        left_out: frozenset[str],
        on_text: OnText | None,
        hint: str,
    ) -> ModelReply:
        content = await _content(api, request, left_out)
        has_begun = False

        async def ask() -> ModelReply:
            nonlocal has_begun
            stream = await self._client.post(
                api.path,
                content=content,
                cast_to=object,
                options={"headers": {"content-type": "application/json"}},
                stream=True,
                stream_cls=self._sdk.AsyncStream[object],
            )
            has_begun = True
            async with stream:
                return await self._read(api.reading(request), aiter(stream), on_text)

        return await self._retried(ask, lambda: has_begun, hint)

    async def _read(
        self, reading: Reading, events: AsyncIterator[Any], on_text: OnText | None
    ) -> ModelReply:
        while not reading.is_complete:
            try:
                event = await anext(events)
            except StopAsyncIteration:
                break
            piece = reading.add(event)
            if piece and on_text is not None:
                try:
                    await on_text(piece)
                except Exception as error:
                    raise _CallersError(error) from error
        return reading.finish()

    async def _retried(
        self, ask: Callable[[], Awaitable[T]], has_begun: Callable[[], bool], hint: str = ""
    ) -> T:
        pause = self._bounds.pause_seconds
        for attempt in range(1, self._bounds.tries_max + 1):
            try:
                return await ask()
            except _CallersError as error:
                raise error.error from None
            except ZibaldoneError:
                raise
            except Exception as error:  # the libraries raise many kinds for what a server may send
                setback = self._setback(error, has_begun(), hint)
            wait = setback.wait_seconds
            wait = pause * (1 + random.random()) / 2 if wait is None else wait
            is_too_long = wait > self._bounds.retry_after_seconds_max
            if not setback.is_passing or is_too_long or attempt == self._bounds.tries_max:
                raise setback.error from None
            await asyncio.sleep(wait)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _setback(self, error: Exception, has_begun: bool, hint: str) -> Setback:
        sdk, assistant = self._sdk, self.assistant
        if isinstance(error.__cause__, AnswerTooLarge):  # wrapped by the library
            error = error.__cause__
        body, status, headers = getattr(error, "body", None), _OK, {}
        if isinstance(error, Failed):
            body = error.error
        elif isinstance(error, sdk.APIStatusError):
            status, headers = error.status_code, error.response.headers
        elif isinstance(error, sdk.APIConnectionError):
            what = (
                "did not answer in time"
                if isinstance(error, sdk.APITimeoutError)
                else ("broke off its answer" if has_begun else "cannot be reached")
            )
            cause = type(error.__cause__).__name__
            is_passing = not isinstance(error, sdk.APITimeoutError) or cause == "ConnectTimeout"
            unavailable = failures.unavailable(assistant, what)
            return Setback(unavailable, is_passing and not has_begun)
        elif not isinstance(error, sdk.APIError):
            return Setback(failures.unavailable(assistant, _what_is_wrong(error)))
        said = failures.said_in(status, body, headers, self._key)
        setback = failures.of_answer(said, assistant, hint=hint)
        is_passing = setback.is_passing and not has_begun
        return Setback(setback.error, is_passing, setback.wait_seconds)


class _CallersError(Exception):
    """Whatever `on_text` raised; it is none of the provider's."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _what_is_wrong(error: Exception) -> str:
    match error:
        case AnswerTooLarge():
            return f"sent an answer that is not read ({error})"
        case Malformed():
            return f"sent an answer that is not complete or not in the format of its API ({error})"
    name = type(error).__name__
    if "Protocol" in name or "Read" in name or "Stream" in name:
        return "broke off its answer"
    return f"sent an answer that cannot be read ({name})"


async def _content(api: Api, request: ModelRequest, left_out: frozenset[str]) -> bytes:
    def write() -> bytes:
        return write_json(api.body(request, left_out))

    size = len(request.system) + sum(len(message.text) for message in request.messages)
    return write() if size < PROVIDER_INLINE_BYTES else await asyncio.to_thread(write)


def _refused_fields(api: Api, refused: ZibaldoneError) -> frozenset[str]:
    """What the provider names as something it does not take, and can be left out."""
    if refused.details.get("provider_status") not in _INVALID_STATUSES:
        return frozenset()
    words = refused.message.lower()
    if not _NOT_TAKEN.search(words):
        return frozenset()
    return frozenset(field for word, field in api.optional.items() if word in words)


@cache
def _bounded_stream() -> Any:
    httpx = extras.require("consult", "httpx2")

    class Bounded(httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
        """A stream that ends with an error where it becomes too long."""

        def __init__(self, stream: Any, bytes_max: int, event_bytes_max: int) -> None:
            self._stream = stream
            self._bytes_left = bytes_max
            self._event_bytes_max = event_bytes_max

        async def __aiter__(self) -> AsyncIterator[bytes]:
            event_bytes, tail = 0, b""
            async for chunk in self._stream:
                for start in range(0, len(chunk), _PIECE_BYTES):
                    piece = chunk[start : start + _PIECE_BYTES]
                    self._bytes_left -= len(piece)
                    text = tail + piece
                    end = max(map(text.rfind, _EVENT_ENDS))
                    event_bytes = event_bytes + len(piece) if end < 0 else len(text) - end
                    if self._bytes_left < 0 or event_bytes > self._event_bytes_max:
                        raise AnswerTooLarge("too long")
                    tail = text[-3:]
                    yield piece
                    await asyncio.sleep(0)

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded

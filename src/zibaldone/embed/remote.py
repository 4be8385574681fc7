"""Any server with the OpenAI embeddings API: OpenAI, Ollama, vLLM, TEI, llama.cpp."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from zibaldone import extras
from zibaldone.embed.background_loop import BackgroundLoop, LoopClosed
from zibaldone.embed.port import Vectors
from zibaldone.errors import (
    ConfigurationError,
    EmbedderUnavailable,
    EmbeddingFailed,
)
from zibaldone.limits import (
    EMBED_BATCH_MAX,
    EMBED_RESPONSE_BYTES_MAX,
    EMBED_RETRY_AFTER_SECONDS_MAX,
    EMBED_TRIES_MAX,
)
from zibaldone.model.vector import np

_OK = 200
_SPLIT_STATUSES = frozenset({413, 422})
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_UNAVAILABLE_STATUSES = frozenset({401, 403, 404, 408, 429, 502, 503, 504})
"""Statuses that concern every text: the URL, the key or the model name is wrong, or the server is
busy. A 500 may be caused by one text only."""

_FIRST_WAIT_SECONDS = 0.25
_RETRY_AFTER_SECONDS_MAX = 3_600.0
"""A longer Retry-After is cut to this."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    wait_seconds: float
    """How long to wait before the next request."""


class Remote:
    """One model of a server. The API key is only ever sent in a header."""

    similarity_min = -1.0

    def __init__(
        self, url: str, model: str, *, dimensions: int, api_key: str = "", seconds_max: float = 30.0
    ) -> None:
        if not url.startswith(("http://", "https://")) or not model or dimensions < 1:
            raise ConfigurationError(
                "embedder is remote: set embedding_url (http:// or https://), embedding_model and "
                "embedding_dimensions too."
            )
        self.name = model
        self.dimensions = dimensions
        self.identity = f"remote/{model}/{dimensions}"
        self._url = url.rstrip("/") + "/embeddings"
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._seconds_max = seconds_max
        self._opening = threading.Lock()
        self._loop: BackgroundLoop | None = None
        self._client: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        parts = [
            self._embed_batch(texts[start : start + EMBED_BATCH_MAX])
            for start in range(0, len(texts), EMBED_BATCH_MAX)
        ]
        return np.concatenate(parts)

    def language_trust(self, text: str) -> float:
        del text
        return 1.0

    def close(self) -> None:
        with self._opening:
            if self._loop is not None:
                self._loop.close()
                self._loop = None

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        answer = self._ask(texts)
        if answer.status in _SPLIT_STATUSES and len(texts) > 1:
            middle = len(texts) // 2
            halves = (self._embed_batch(texts[:middle]), self._embed_batch(texts[middle:]))
            return np.concatenate(halves)
        if answer.status != _OK:
            failure = f"{self.name}: the embedding server answered {answer.status}."
            if answer.status in _UNAVAILABLE_STATUSES:
                raise EmbedderUnavailable(failure, retry_after_seconds=answer.wait_seconds)
            raise EmbeddingFailed(failure)
        return self._vectors(answer.body, len(texts))

    def _ask(self, texts: Sequence[str]) -> _Answer:
        """The server's answer; retries while it is busy or cannot be reached."""
        body = orjson.dumps({"model": self.name, "input": list(texts)})
        for attempt in range(EMBED_TRIES_MAX):
            is_last = attempt + 1 == EMBED_TRIES_MAX
            wait_s = _FIRST_WAIT_SECONDS * 2.0**attempt
            try:
                answer = self._post(body, wait_s)
            except _transport_errors() as problem:
                if is_last:
                    why = type(problem).__name__
                    failure = f"{self.name}: cannot reach the embedding server ({why})."
                    raise EmbedderUnavailable(failure) from None
            else:
                wait_s = answer.wait_seconds
                is_too_long = wait_s > EMBED_RETRY_AFTER_SECONDS_MAX  # the caller retries later
                if answer.status not in _RETRIED_STATUSES or is_last or is_too_long:
                    return answer
            time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _post(self, body: bytes, wait_seconds: float) -> _Answer:
        """Send one request; stops reading an answer that is too long, or that does not end."""
        with self._opening:
            if self._loop is None:
                self._loop = BackgroundLoop("zibaldone-embedder", self._close_client)
            loop = self._loop
        try:
            return loop.run(self._post_within(body, wait_seconds))
        except TimeoutError:
            failure = f"{self.name}: the embedding server's answer takes too long."
            raise EmbedderUnavailable(failure) from None
        except LoopClosed:
            raise EmbedderUnavailable(f"{self.name}: it was closed.") from None

    async def _post_within(self, body: bytes, wait_seconds: float) -> _Answer:
        if self._client is None:
            httpx = extras.require("remote", "httpx2")
            self._client = httpx.AsyncClient(timeout=None)  # the request as a whole has one
        async with (
            asyncio.timeout(self._seconds_max),
            self._client.stream("POST", self._url, content=body, headers=self._headers) as answer,
        ):
            parts, size = [], 0
            async for part in answer.aiter_raw():  # unpacked, a small answer could be huge
                size += len(part)
                if size > EMBED_RESPONSE_BYTES_MAX:
                    raise EmbeddingFailed(
                        f"{self.name}: the embedding server's answer is too large."
                    )
                parts.append(part)
            wait_seconds = _retry_after_s(answer.headers.get("retry-after"), wait_seconds)
            return _Answer(answer.status_code, b"".join(parts), wait_seconds)

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _vectors(self, body: bytes, count: int) -> Vectors:
        try:
            entries = sorted(orjson.loads(body)["data"], key=lambda entry: entry["index"])
            indexes = [entry["index"] for entry in entries]
            rows = np.stack([_vector(entry["embedding"]) for entry in entries])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EmbeddingFailed(
                f"{self.name}: the embedding server's answer is not in the OpenAI format."
            ) from None
        if indexes != list(range(count)):
            raise EmbeddingFailed(
                f"{self.name}: the embedding server returned {len(indexes)} vectors for {count} "
                "texts, or some of them twice."
            )
        if rows.shape[1:] != (self.dimensions,):
            raise EmbeddingFailed(
                f"{self.name}: the vectors have the shape {rows.shape[1:]}, not "
                f"{(self.dimensions,)}. Set embedding_dimensions to what the model returns."
            )
        if not np.isfinite(rows).all():
            raise EmbeddingFailed(f"{self.name}: a vector contains NaN or infinity.")
        peaks = np.abs(rows).max(axis=1, keepdims=True)
        rows = rows / np.where(peaks > 0, peaks, 1.0)  # else squares may overflow
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Vectors = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        return unit


def _transport_errors() -> tuple[type[Exception], ...]:
    return (extras.require("remote", "httpx2").RequestError,)


def _vector(embedding: Any) -> Any:
    """Decode a list of numbers, or base64 of little-endian float32, as float64."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float64)
    if not isinstance(embedding, list) or not all(type(x) in (int, float) for x in embedding):
        raise TypeError("not a list of numbers")
    return np.array(embedding, np.float64)


def _retry_after_s(header: str | None, otherwise_s: float) -> float:
    """Parse a Retry-After header: seconds or a date; anything else is ignored."""
    if header is None:
        return otherwise_s
    try:
        wanted_s = float(header)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(header).astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            return otherwise_s
        wanted_s = (moment - datetime.now(UTC)).total_seconds()
    return min(max(0.0, wanted_s), _RETRY_AFTER_SECONDS_MAX)

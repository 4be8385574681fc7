"""Any server with a /rerank endpoint: Text Embeddings Inference, Jina, Cohere, vLLM, llama.cpp."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson

from zibaldone import extras
from zibaldone.errors import ConfigurationError, RerankerUnavailable
from zibaldone.limits import (
    RERANK_ANSWER_BYTES_MAX,
    RERANK_REQUESTS_EXTRA,
    RERANK_REQUESTS_MAX,
)

Dialect = Literal["auto", "tei", "cohere"]
DIALECTS: tuple[Dialect, ...] = ("auto", "tei", "cohere")

_OK = 200
_MISREAD_STATUSES = frozenset({400, 415, 422})
"""Answers to a request in the other dialect."""


@dataclass(frozen=True, slots=True)
class RerankerSettings:
    url: str = ""
    model: str = ""
    dialect: Dialect = "auto"
    api_key: str = ""


class RemoteReranker:
    """The requests differ (`dialect`); answers are read in either form. The API key is only ever
    sent in a header."""

    def __init__(self, settings: RerankerSettings) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("reranker must be a URL with http:// or https://.")
        path = parts.path.rstrip("/")
        path = path if path.endswith("rerank") else path + "/rerank"
        self._url = parts._replace(path=path).geturl()
        self._model = settings.model
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
        }
        if settings.api_key:
            self._headers["authorization"] = f"Bearer {settings.api_key}"
        self._dialects: tuple[Dialect, ...] = (settings.dialect,)
        if settings.dialect == "auto":  # Text Embeddings Inference serves one model, without a name
            self._dialects = ("cohere", "tei") if settings.model else ("tei", "cohere")
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return self._model or str(urlsplit(self._url).hostname)

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        status, body = 0, b""
        for dialect in self._dialects:
            status, body = await self._post(self._request(dialect, question, texts))
            if status not in _MISREAD_STATUSES:
                if status == _OK:
                    self._dialects = (dialect,)
                break
        if status != _OK:
            raise RerankerUnavailable(f"The reranker {self.name} answered {status}")
        return self._read(body, len(texts))

    def _request(self, dialect: Dialect, question: str, texts: Sequence[str]) -> bytes:
        asked: dict[str, Any] = {"query": question}
        if dialect == "tei":
            asked |= {"texts": list(texts), "truncate": True}
        else:
            asked |= {"documents": list(texts), "top_n": len(texts)}
            asked |= {"model": self._model} if self._model else {}
        return orjson.dumps(asked)

    async def _post(self, request: bytes) -> tuple[int, bytes]:
        client = await self._opened()
        errors = extras.require("remote", "httpx2").HTTPError
        try:
            async with client.stream(
                "POST", self._url, content=request, headers=self._headers
            ) as answer:
                received = bytearray()
                async for piece in answer.aiter_raw():  # unpacked, a small one could be huge
                    received += piece
                    if len(received) > RERANK_ANSWER_BYTES_MAX:
                        raise RerankerUnavailable(f"The answer of {self.name} is too large")
                return answer.status_code, bytes(received)
        except errors as problem:
            why = type(problem).__name__
            raise RerankerUnavailable(f"The reranker {self.name} broke off ({why})") from None

    async def _opened(self) -> Any:
        """The client of the running loop: connections belong to one."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # In a thread: reading the system's certificates takes tens of milliseconds.
            self._client, self._loop = await asyncio.to_thread(self._open), loop
        return self._client

    def _open(self) -> Any:
        httpx = extras.require("remote", "httpx2")
        # The caller bounds the time of a request as a whole. No connection outlives its request:
        # it could outlive its event loop, too.
        limits = httpx.Limits(
            max_connections=RERANK_REQUESTS_MAX + RERANK_REQUESTS_EXTRA,
            max_keepalive_connections=0,
        )
        return httpx.AsyncClient(timeout=None, limits=limits, follow_redirects=False)

    def _read(self, body: bytes, count: int) -> list[float]:
        scores: dict[int, float] = {}
        try:
            for entry in _entries(orjson.loads(body)):
                index, score = entry["index"], entry.get("relevance_score", entry.get("score"))
                if type(index) is not int or type(score) not in (int, float):
                    raise TypeError("not a number")
                scores[index] = float(score)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise RerankerUnavailable(f"The answer of {self.name} cannot be read") from None
        if scores.keys() != set(range(count)):
            raise RerankerUnavailable(
                f"{self.name} returned {len(scores)} scores for {count} texts, or for others"
            )
        if not all(map(math.isfinite, scores.values())):
            raise RerankerUnavailable(f"A score of {self.name} is not a number")
        return [scores[place] for place in range(count)]


def _entries(answer: Any) -> Sequence[Mapping[str, Any]]:
    """A list (Text Embeddings Inference), or an object with one."""
    entries = answer if isinstance(answer, list) else answer.get("results", answer.get("data"))
    if not isinstance(entries, list):
        raise TypeError("not a list")
    return entries


def open_reranker(settings: RerankerSettings) -> RemoteReranker | None:
    """The reranker of the settings, not connected yet; None: there is none."""
    if not settings.url:
        return None
    extras.require("remote", "httpx2")
    return RemoteReranker(settings)

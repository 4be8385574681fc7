"""A deployment that runs already, at an address: its tools over MCP, with an API key."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from zibaldone.canary.counters import parse_counters
from zibaldone.canary.deployment import Answer, Unreachable
from zibaldone.errors import (
    ConfigurationError,
    Internal,
    NotConfigured,
    Unauthenticated,
    ZibaldoneError,
)
from zibaldone.limits import CANARY_ANSWER_BYTES_MAX, CANARY_ANSWER_SECONDS_MAX

_PROFILE = "/mcp-all"
"""It has every tool, with names that have no dots."""

_CONNECTIONS = 8


class RemoteDeployment:
    """Use it as an async context manager."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = _parsed(url)
        self._headers = {"accept": "application/json", "connection": "close"}
        if key:
            self._headers["x-api-key"] = key
        self._threads = ThreadPoolExecutor(_CONNECTIONS, thread_name_prefix="zibaldone-canary")

    @property
    def description(self) -> str:
        return f"the server at {self._url.scheme}://{self._url.netloc}{self._url.path}"

    @property
    def disturbances(self) -> None:
        return None

    async def __aenter__(self) -> RemoteDeployment:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def require_ready(self) -> None:
        try:
            _, body = await self._ask("GET", "/health")
            embedder = _decoded(body)["services"]["embedder"]["status"]
        except (Unreachable, KeyError, TypeError) as problem:
            reason = str(problem) if isinstance(problem, Unreachable) else "it has no /health"
            raise ConfigurationError(
                f"There is no Zibaldone at {self._url.geturl()}: {reason}."
            ) from None
        if embedder == "off":
            raise NotConfigured("The server has no embedding model, and the canary checks vectors.")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        params = {"name": tool.replace(".", "_"), "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, body = await self._ask("POST", _PROFILE, orjson.dumps(message))
        envelope = _decoded(body)
        try:
            if status == http.client.UNAUTHORIZED and "x-api-key" not in self._headers:
                raise Unauthenticated("The server wants an API key. Set CANARY_KEY to one.")
            if "result" not in envelope:
                raise _refusal(status, envelope)
            result = envelope["result"]
            answer: Answer = orjson.loads(result["content"][0]["text"])
            if result["isError"] or "error" in answer:
                raise _error(answer)
        except (KeyError, IndexError, TypeError, ValueError):
            raise Unreachable(f"it answered HTTP {status} with something else") from None
        return answer

    async def counters(self) -> Mapping[str, float] | None:
        status, body = await self._ask("GET", "/metrics")
        if status != http.client.OK:
            return None
        try:
            return parse_counters(body.decode())
        except ValueError:
            raise Unreachable("its /metrics are not in the format of Prometheus") from None

    async def _ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._exchange, method, path, body)

    def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """One request on a connection of its own: none is ever sent twice."""
        url = self._url
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname or "", url.port, timeout=CANARY_ANSWER_SECONDS_MAX)
        headers = {**self._headers, "content-type": "application/json"} if body else self._headers
        try:
            connection.connect()
            # The time limit of a socket is for each piece of an answer, this one for all of it.
            cut = threading.Timer(CANARY_ANSWER_SECONDS_MAX, _shut, (connection.sock,))
            cut.daemon = True
            cut.start()
            try:
                connection.request(method, url.path.rstrip("/") + path, body or None, headers)
                response = connection.getresponse()
                answer = response.read(CANARY_ANSWER_BYTES_MAX + 1)
                response.close()
            finally:
                cut.cancel()
        except (OSError, http.client.HTTPException) as problem:
            reason = getattr(problem, "strerror", None) or type(problem).__name__
            raise Unreachable(f"no answer ({reason})") from None
        finally:
            connection.close()
        if len(answer) > CANARY_ANSWER_BYTES_MAX:
            raise Unreachable(f"its answer has more than {CANARY_ANSWER_BYTES_MAX:,} bytes")
        return response.status, answer


def _shut(connection: socket.socket) -> None:
    """End it under whoever reads from it in another thread."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises if it is no number
    except ValueError:
        is_usable = False
    if not is_usable or parts.username is not None:
        raise ConfigurationError("--url must be http://HOST:PORT or https://HOST.")
    return parts._replace(query="", fragment="")


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Unreachable("its answer is not JSON") from None


def _refusal(status: int, envelope: Any) -> ZibaldoneError:
    """Of a request that reached no tool: the key, the profile, the protocol."""
    if "code" in envelope and "message" in envelope:
        return _error(envelope)
    message = str(envelope["error"]["message"])
    return Unauthenticated(message) if status == http.client.UNAUTHORIZED else Internal(message)


def _error(described: Mapping[str, Any]) -> ZibaldoneError:
    """The error that the server described, as the same class that it raised."""
    code, message = described["code"], str(described["message"])
    details = described.get("details")
    for kind in _kinds(ZibaldoneError):
        if kind.code == code:
            return kind(message, **(details if isinstance(details, dict) else {}))
    return Internal(f"{message} [{code}]")


def _kinds(kind: type[ZibaldoneError]) -> Iterator[type[ZibaldoneError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)

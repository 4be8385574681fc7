"""An MCP client for one server over HTTP: requests one after the other, one session, no streams.

The official client does not serve here (docs/explain/push.md): it opens a GET stream, ends its
session with a DELETE, and does not show the status and the headers that decide about a retry.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

import zibaldone
from zibaldone import extras
from zibaldone.errors import (
    ConfigurationError,
    DeadlineExceeded,
    RemoteDenied,
    RemoteFailed,
    RemoteUnavailable,
)
from zibaldone.limits import ECHO_CHARS_MAX, PUSH_ANSWER_BYTES_MAX, PUSH_REQUEST_SECONDS_MAX
from zibaldone.push.answer import NO_MEMORY, IncompleteAnswer, find_answer, result_of, tool_answer
from zibaldone.push.retry import Fault, Retry, retry_after_seconds

PROTOCOL_VERSION = "2024-11-05"
_SESSION = "mcp-session-id"
_REDIRECTS = frozenset({307, 308})
_REDIRECTS_MAX = 3
_DENIED = frozenset({401, 403})
_BUSY = frozenset({429, 502, 503, 504})
_NOT_DONE = frozenset({429})
"""Of these statuses, the ones that say that nothing was done."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the server said of itself when it was first asked."""

    name: str
    version: str
    protocol_version: str
    has_session: bool


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


class _SessionLost(Exception):
    """The server does not know our session any more; nothing was done."""


class McpClient:
    """The first call initialises the session that all calls share."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        retry: Retry | None = None,
        request_seconds_max: float = PUSH_REQUEST_SECONDS_MAX,
        needs_session: bool = False,
    ) -> None:
        """`needs_session`: a server that gives no session id is refused, not taken for one that
        needs none."""
        if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
            raise ConfigurationError(f"{url!r} is not the URL of a server (http:// or https://).")
        self.url = url
        self.retry = retry or Retry()
        self._request_seconds_max = request_seconds_max
        self._needs_session = needs_session
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
        }
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._http: Any = None
        self._server: ServerInfo | None = None
        self._session_id = ""
        self._initialising = asyncio.Lock()
        self._last_id = 0

    async def __aenter__(self) -> McpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def server_name(self) -> str:
        """What the server calls itself, with its version; empty before it was asked."""
        return f"{self._server.name} {self._server.version}".strip() if self._server else ""

    async def close(self) -> None:
        """Close the connections. The session is left to the server, which forgets it in time."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def server(self) -> ServerInfo:
        """Initialise the session, unless it is; this is also the check that the server is up."""
        return await self.retry.run(self._initialised)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        before_replay: Callable[[], Awaitable[dict[str, Any] | None]] | None = None,
    ) -> dict[str, Any]:
        """The tool's answer. `before_replay` may say that an unanswered call was carried out."""
        params = {"name": name, "arguments": dict(arguments)}

        async def attempt() -> dict[str, Any]:
            await self._initialised()
            try:
                return tool_answer(result_of(await self._request("tools/call", params)))
            except _SessionLost:
                await self._initialised()
            try:
                return tool_answer(result_of(await self._request("tools/call", params)))
            except _SessionLost:
                error = RemoteUnavailable(f"{self.url} forgets a session as soon as it is made.")
                raise Fault(error, may_have_arrived=False) from None

        return await self.retry.run(attempt, before_replay)

    async def _initialised(self) -> ServerInfo:
        async with self._initialising:
            if self._server is None:
                self._server = await self._initialise()
            return self._server

    async def _initialise(self) -> ServerInfo:
        self._session_id = ""
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "zibaldone-push", "version": zibaldone.__version__},
        }
        response, request_id = await self._send("initialize", params)
        result = result_of(self._envelope(response, request_id))
        session_id = response.headers.get(_SESSION, "").strip()
        if not session_id and self._needs_session:
            raise RemoteFailed(
                f"{self.url} did not return a session id (Mcp-Session-Id). It may be no MCP "
                "server, or one without sessions: then leave --strict-session out."
            )
        self._session_id = session_id
        info = result.get("serverInfo")
        info = info if isinstance(info, dict) else {}
        with contextlib.suppress(RemoteFailed, _SessionLost):  # some servers know no notifications
            await self._send("notifications/initialized", None, is_notification=True)
        return ServerInfo(
            name=str(info.get("name", "")),
            version=str(info.get("version", "")),
            protocol_version=str(result.get("protocolVersion", "")),
            has_session=bool(session_id),
        )

    async def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        response, request_id = await self._send(method, params)
        return self._envelope(response, request_id)

    def _envelope(self, response: _Response, request_id: int) -> dict[str, Any]:
        try:
            return find_answer(response.headers.get("content-type", ""), response.body, request_id)
        except IncompleteAnswer:
            error = RemoteUnavailable(f"The answer of {self.url} is incomplete or not of MCP.")
            raise Fault(error, may_have_arrived=True) from None

    async def _send(
        self, method: str, params: Mapping[str, Any] | None, *, is_notification: bool = False
    ) -> tuple[_Response, int]:
        """Send one message and look at the status of the answer before anything else of it."""
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        if not is_notification:
            self._last_id += 1
            message["id"] = self._last_id
        message["method"] = method
        if params is not None:
            message["params"] = params
        request_id, session_id = self._last_id, self._session_id
        response = await self._post(orjson.dumps(message), session_id)
        if not 200 <= response.status < 300:
            self._raise_for(response, session_id)
        return response, request_id

    def _raise_for(self, response: _Response, session_id: str) -> None:
        status = response.status
        if status == 404 and session_id:
            if self._session_id == session_id:
                self._server = None
            raise _SessionLost
        if status in _DENIED:
            raise RemoteDenied(
                f"{self.url} answered {status}: the API key is missing, wrong or not allowed to "
                "do this. Set push_key (ZIBALDONE_PUSH_KEY).",
                http_status=status,
            )
        if status in _BUSY:
            error = RemoteUnavailable(f"{self.url} answered {status}.", http_status=status)
            wait_seconds = retry_after_seconds(response.headers.get("retry-after"))
            raise Fault(error, may_have_arrived=status not in _NOT_DONE, wait_seconds=wait_seconds)
        if status == 404:
            raise RemoteFailed(f"Nothing is served at {self.url}. {NO_MEMORY}", http_status=status)
        text = response.body[: 4 * ECHO_CHARS_MAX].decode("utf-8", "replace")
        shown = " ".join(text.split())[:ECHO_CHARS_MAX]
        raise RemoteFailed(f"{self.url} answered {status}: {shown}", http_status=status)

    async def _post(self, body: bytes, session_id: str) -> _Response:
        headers = self._headers if not session_id else {**self._headers, _SESSION: session_id}
        for _ in range(_REDIRECTS_MAX):
            response = await self._post_once(body, headers)
            if response.status not in _REDIRECTS:
                return response
            self.url = self._redirected(response.headers.get("location", ""))
        raise RemoteFailed(f"{self.url} redirects in circles.")

    def _redirected(self, location: str) -> str:
        """The same server at another path; the key and the notes go to no other."""
        target = urljoin(self.url, location)
        here, there = urlsplit(self.url), urlsplit(target)
        if not location or there.hostname != here.hostname:
            raise RemoteFailed(f"{self.url} redirects to another server: {target!r}.")
        # Behind a proxy, servers often name the scheme and port that the proxy speaks to them.
        return here._replace(path=there.path, query=there.query).geturl()

    async def _post_once(self, body: bytes, headers: Mapping[str, str]) -> _Response:
        httpx = extras.require("push", "httpx2")
        if self._http is None:
            # Certificates take longer to load than a push of a few notes takes.
            verify = self.url.startswith("https://")
            self._http = httpx.AsyncClient(timeout=self._request_seconds_max, verify=verify)
        self.retry.deadline.check()
        seconds_max = min(self._request_seconds_max, self.retry.deadline.left_seconds())
        try:
            async with (
                asyncio.timeout(seconds_max),
                self._http.stream("POST", self.url, content=body, headers=headers) as answer,
            ):
                parts, size = [], 0
                async for part in answer.aiter_raw():  # unpacked, a small answer could be huge
                    size += len(part)
                    if size > PUSH_ANSWER_BYTES_MAX:
                        raise RemoteFailed(f"The answer of {self.url} is too large.")
                    parts.append(part)
                return _Response(answer.status_code, answer.headers, b"".join(parts))
        except TimeoutError:
            if self.retry.deadline.left_seconds() <= 0:
                raise DeadlineExceeded(
                    "The time given for the push is over; run it again to go on."
                ) from None
            error = RemoteUnavailable(
                f"{self.url} did not answer within {self._request_seconds_max:g} seconds."
            )
            raise Fault(error, may_have_arrived=True) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            error = RemoteUnavailable(f"Cannot connect to {self.url}: {_cause(problem)}.")
            raise Fault(error, may_have_arrived=False) from None
        except httpx.TimeoutException:
            error = RemoteUnavailable(
                f"{self.url} did not answer within {self._request_seconds_max:g} seconds."
            )
            raise Fault(error, may_have_arrived=True) from None
        except httpx.TransportError as problem:
            error = RemoteUnavailable(f"The connection to {self.url} broke: {_cause(problem)}.")
            raise Fault(error, may_have_arrived=True) from None
        except httpx.InvalidURL:
            raise ConfigurationError(f"{self.url!r} is not a URL.") from None


def _cause(problem: Exception) -> str:
    return str(problem).rstrip(".") or type(problem).__name__

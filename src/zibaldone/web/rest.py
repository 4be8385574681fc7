"""REST: tools by URL. The table in `web.routes` says which; this module finds and calls them.

A document id may contain slashes. Written plainly (`/documents/a/b`) or encoded
(`/documents/a%2Fb`) it is the same id; only the encoded form can name a document whose id ends in
`/revisions`, `/revisions/<number>` or `/revisions/diff`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from zibaldone.access.principal import Principal
from zibaldone.errors import (
    BadRequest,
    InsufficientScope,
    InvalidArgument,
    NotFound,
    NotImplementedYet,
)
from zibaldone.limits import ECHO_CHARS_MAX, REVISION_MAX
from zibaldone.protocol.long_answers import dumps_long
from zibaldone.tools.call import call_tool
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import AnyTool, Call, Runtime
from zibaldone.web.auth import Authenticator
from zibaldone.web.gate import Admission, Gate
from zibaldone.web.gone import end_when_gone, go_on_when_gone
from zibaldone.web.http import (
    JSON_TYPE,
    Endpoint,
    HttpScope,
    Receive,
    Send,
    parse_object,
    refuse_method,
    request_id,
    send_json,
    send_pieces,
)
from zibaldone.web.routes import Route

Finder = Callable[[HttpScope], tuple[Route | str, Mapping[str, bytes]]]
"""Finds the route of a request and the names in its path; or the methods that are allowed."""

_SEGMENTS = {"path": b".*", "revision": b"[0-9]+"}
"""What a name in a route's path stands for, where it is not any one segment."""
_NUMBERS = frozenset({"revision"})


class Rest:
    """The endpoints of a table of routes, each behind authentication and the gate."""

    def __init__(
        self,
        runtime: Runtime,
        catalogue: Catalogue,
        routes: Iterable[Route],
        authenticator: Authenticator,
        gate: Gate,
    ) -> None:
        self._runtime = runtime
        self._tools = {tool.name: tool for tool in catalogue.offered}
        self._authenticator = authenticator
        self._gate = gate
        fixed: dict[str, list[Route]] = {}
        named: dict[str, list[Route]] = {}
        for route in routes:
            self._require_tool(route)
            if "{" in route.path:
                named.setdefault(_fixed_start(route.path), []).append(route)
            elif route.tool is not None:
                fixed.setdefault(route.path, []).append(route)
        self.exact: dict[str, Endpoint] = {
            path: self._endpoint(_plain_finder(known)) for path, known in fixed.items()
        }
        self.by_start: dict[str, Endpoint] = {
            start: self._endpoint(_named_finder(start, known)) for start, known in named.items()
        }

    def _require_tool(self, route: Route) -> None:
        if route.tool is not None and route.tool not in self._tools:
            raise ValueError(f"{route.method} {route.path}: no tool {route.tool!r} is offered.")

    def _endpoint(self, find: Finder) -> Endpoint:
        """The routes that `find` knows, once the caller is known and there is room for it."""

        async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
            end_when_gone(scope)
            principal = await self._authenticator.authenticate(scope)
            admission = await self._gate.admit(principal, scope, receive)
            try:
                if admission.has_waited:
                    principal = await self._authenticator.authenticate(scope)
                work = self._answer(find, scope, send, principal, admission)
                await self._gate.pace.run(principal.key_id, work)
            except InsufficientScope as error:
                raise self._authenticator.challenged(error) from None
            finally:
                self._gate.leave(admission)

        return serve

    async def _answer(
        self,
        find: Finder,
        scope: HttpScope,
        send: Send,
        principal: Principal,
        admission: Admission,
    ) -> None:
        route, named = find(scope)
        if isinstance(route, str):
            await refuse_method(scope, send, route)
            return
        if route.is_text:
            admission.body = b""
        tool, arguments = self._tool_call(route, scope, named, admission)
        if tool.effect != "read":
            go_on_when_gone(scope)
        call = Call(self._runtime, principal, request_id(scope), request_bytes=len(admission.body))
        answer = await call_tool(tool, call, arguments, from_text=route.is_text)
        status = route.status if answer.get("status") == "created" else 200
        if tool.is_long:
            pieces = await dumps_long(answer, principal.key_id)
            await send_pieces(scope, send, status, pieces, (JSON_TYPE,))
        else:
            await send_json(scope, send, status, answer)

    def _tool_call(
        self, route: Route, scope: HttpScope, named: Mapping[str, bytes], admission: Admission
    ) -> tuple[AnyTool, dict[str, Any]]:
        """The tool that a request calls, and its arguments."""
        if route.tool is None:
            raise NotImplementedYet(route.refusal)
        is_text = route.is_text
        in_path = {name: _decoded(name, value, is_text) for name, value in named.items()}
        arguments = _query(scope)
        tool = route.tool
        if route.prepare is not None:
            tool = route.prepare(arguments) or tool
        if admission.body:
            arguments.update(parse_object(admission.body, admission.count))
        return self._tools[tool], _joined(arguments, in_path)


def _plain_finder(routes: Sequence[Route]) -> Finder:
    """For the methods of one path without names in it."""
    by_method = _by_method(routes)
    allowed = ", ".join(route.method for route in routes)

    def find(scope: HttpScope) -> tuple[Route | str, Mapping[str, bytes]]:
        return by_method.get(scope["method"], allowed), {}

    return find


def _named_finder(start: str, routes: Sequence[Route]) -> Finder:
    """For paths with names in them, all of which start alike."""
    patterns = patterns_of(routes)
    raw_start = start.encode()

    def find(scope: HttpScope) -> tuple[Route | str, Mapping[str, bytes]]:
        raw = _raw_path(scope, raw_start)
        method: str = scope["method"]
        for pattern in patterns:
            if pattern.hint not in raw:
                continue
            named = pattern.match(raw)
            if named is None:
                continue
            route = pattern.by_method.get(method)
            if route is not None:
                return route, named
            if not pattern.is_shared:
                return pattern.allowed, named
        raise NotFound("Nothing is served here; /openapi.json lists what is.")

    return find


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path with names in it, and the routes of its methods."""

    expression: re.Pattern[bytes]
    hint: bytes
    """What every path that matches contains: most do not, and need no further look."""
    by_method: Mapping[str, Route]
    is_shared: bool

    def match(self, raw: bytes) -> dict[str, bytes] | None:
        match = self.expression.fullmatch(raw)
        return None if match is None else match.groupdict()

    @property
    def allowed(self) -> str:
        return ", ".join(method for method in self.by_method if method != "HEAD")


def patterns_of(routes: Sequence[Route]) -> list[Pattern]:
    """In the order of the routes: the first one that matches counts."""
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    return [
        Pattern(
            _expression(path),
            hint=max(re.split(r"\{\w+\}", path)[1:], key=len).encode(),
            by_method=_by_method(known),
            is_shared=any(route.is_shared for route in known),
        )
        for path, known in by_path.items()
    ]


def _expression(path: str) -> re.Pattern[bytes]:
    parts = re.split(r"\{(\w+)\}", path)  # texts and names take turns
    expression = re.escape(parts[0].encode())
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        expression += b"(?P<%s>%s)" % (name.encode(), _SEGMENTS.get(name, b"[^/]+"))
        expression += re.escape(text.encode())
    return re.compile(expression, re.DOTALL)


def _fixed_start(path: str) -> str:
    return path[: path.index("{")]


def _by_method(routes: Iterable[Route]) -> dict[str, Route]:
    by_method: dict[str, Route] = {route.method: route for route in routes}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]
    return by_method


def _raw_path(scope: HttpScope, start: bytes) -> bytes:
    """The path as it was sent: an encoded slash does not part segments."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    # `/%64ocuments/…` leads here too, but what follows would not be where it is looked for.
    if not raw.startswith(start):
        raise NotFound(f"Nothing is served at this URL; write {start.decode()} plainly.")
    return raw.partition(b"?")[0]


def _decoded(name: str, value: bytes, is_text: bool) -> str | int:
    if name in _NUMBERS:
        return value.decode("ascii") if is_text else _whole_number(value)
    try:
        return (unquote_to_bytes(value) if b"%" in value else value).decode()
    except UnicodeDecodeError:
        raise BadRequest("The URL is not valid UTF-8.", field=name) from None


def _whole_number(digits: bytes) -> int:
    if len(digits) > len(str(REVISION_MAX)):
        raise InvalidArgument("The revision is not a number a document can have.", field="revision")
    return int(digits)


def _query(scope: HttpScope) -> dict[str, Any]:
    raw: bytes = scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = _pairs(raw.decode("ascii"))
    except ValueError:
        raise BadRequest("The query string is not valid.", field="query") from None
    arguments: dict[str, Any] = {}
    for name, value in pairs:
        if name in arguments:
            shown = name[:ECHO_CHARS_MAX]
            raise BadRequest(f"{shown!r} is given twice in the query string.", field=shown)
        arguments[name] = value
    return arguments


def _pairs(text: str) -> list[tuple[str, str]]:
    if "%" in text or "+" in text:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=50)
    # Nothing to decode, as in most: a tenth of the cost.
    parts = text.split("&", 50)
    if len(parts) > 50:
        raise ValueError("too many fields")
    return [part.partition("=")[::2] for part in parts if part]


def _joined(arguments: dict[str, Any], in_path: dict[str, Any]) -> dict[str, Any]:
    """What the URL's path says cannot be said again, differently, beside it."""
    if not arguments or not in_path:
        return arguments or in_path
    taken = {*in_path, "document_id"} if "path" in in_path else in_path.keys()
    if not arguments.keys().isdisjoint(taken):
        raise BadRequest("The path is in the URL already.", field="path")
    return {**arguments, **in_path}

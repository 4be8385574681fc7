"""REST: documents by URL. Each operation is a tool; this module only maps URLs to arguments.

A document id may contain slashes. Written plainly (`/documents/a/b`) or encoded
(`/documents/a%2Fb`) it is the same id; only the encoded form can name a document whose id ends in
`/revisions`, `/revisions/<number>` or `/revisions/diff`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from zibaldone.errors import BadRequest, InvalidArgument, NotFound, NotImplementedYet
from zibaldone.limits import REVISION_MAX
from zibaldone.tools import catalog
from zibaldone.tools.call import call as call_tool
from zibaldone.tools.documents import (
    batch_read,
    delete_document,
    get_document,
    get_document_for_rewrite,
    history,
    ingest_document,
    list_documents,
    patch_document,
    search_knowledge,
    update_document,
    upload_document,
)
from zibaldone.tools.spec import Answer, Call, Runtime, ToolSpec
from zibaldone.tools.upkeep import index
from zibaldone.web.auth import Authenticator
from zibaldone.web.gate import Gate
from zibaldone.web.http import (
    Endpoint,
    HttpScope,
    Receive,
    Send,
    parse_object,
    refuse_method,
    request_id,
    send_json,
)

Tool = ToolSpec[Any]
DOCUMENTS_PATH = "/documents/"
_PRINCIPAL_KEY = "zibaldone.principal"
_BODY_KEY = "zibaldone.body"
_AFTER_NUMBER: tuple[list[bytes], ...] = ([], [b"restore"])


POSTED: dict[str, Tool] = {
    "/batch-read": batch_read.TOOL,
    "/ingest": ingest_document.TOOL,
    "/kb/reindex-missing": index.REINDEX,
    "/kb/cleanup-orphans": index.CLEANUP,
    **{
        "/" + tool.name.replace(".", "/"): tool
        for tool in catalog.ALL
        if tool.name.startswith("rag.")
    },
}
"""Tools without a resource of their own: POST their arguments to these."""


class Rest:
    """The endpoints; `web.app` says which path leads to which."""

    def __init__(self, runtime: Runtime, authenticator: Authenticator, gate: Gate) -> None:
        self._runtime = runtime
        self._authenticator = authenticator
        self._gate = gate

    def admitted(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint behind the door: the caller is known and there is room for the request."""

        async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
            principal = await self._authenticator.authenticate(scope)
            scope[_PRINCIPAL_KEY] = principal
            admission = await self._gate.admit(principal, scope, receive)
            scope[_BODY_KEY] = admission.body
            try:
                await endpoint(scope, receive, send)
            finally:
                self._gate.leave(admission)

        return serve

    async def collection(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        match scope["method"]:
            case "GET" | "HEAD":
                await self._run(list_documents.TOOL, scope, receive, send)
            case "POST":
                await self._run(upload_document.TOOL, scope, receive, send, status=201)
            case _:
                await refuse_method(scope, send, "GET, POST")

    async def document(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        segments = _segments(scope)
        tail = _revisions_tail(segments)
        if tail is not None:
            await self._revisions(
                _decoded(segments[:-tail]), segments[-tail:], scope, receive, send
            )
            return
        if scope["method"] == "POST" and len(segments) > 1 and segments[-1] == b"move":
            raise NotImplementedYet("Moving a document is not offered; create it anew and delete.")
        known = {"path": _decoded(segments)}
        match scope["method"]:
            case "GET" | "HEAD":
                await self._read(known["path"], scope, send)
            case "PUT":
                await self._run(update_document.TOOL, scope, receive, send, known)
            case "PATCH":
                await self._run(patch_document.TOOL, scope, receive, send, known)
            case "DELETE":
                await self._run(delete_document.TOOL, scope, receive, send, known)
            case _:
                await refuse_method(scope, send, "GET, PUT, PATCH, DELETE")

    async def _read(self, path: str, scope: HttpScope, send: Send) -> None:
        """The whole document, unless a range or the short view is asked for."""
        arguments = _query(scope)
        view = arguments.pop("view", None)
        if view not in (None, "full", "preview"):
            raise InvalidArgument("view is 'full' or 'preview'.", field="view")
        tool: Tool = get_document_for_rewrite.TOOL
        if view == "preview" or (view is None and arguments):
            tool = get_document.TOOL
            arguments.setdefault("related", view == "preview")
        answer = await self._call(tool, scope, _joined(arguments, {"path": path}), from_text=True)
        await send_json(scope, send, 200, answer)

    async def _revisions(
        self, path: str, tail: list[bytes], scope: HttpScope, receive: Receive, send: Send
    ) -> None:
        known: dict[str, Any] = {"path": path}
        is_read = scope["method"] in ("GET", "HEAD")
        match tail:
            case [_] if is_read:
                await self._run(history.HISTORY, scope, receive, send, known)
            case [_, b"diff"] if is_read:
                await self._run(history.DIFF, scope, receive, send, known)
            case [_, number] if is_read:
                known["revision"] = number.decode("ascii")
                await self._run(history.REVISION, scope, receive, send, known)
            case [_, number, b"restore"] if scope["method"] == "POST":
                known["revision"] = _whole_number(number)
                await self._run(history.RESTORE, scope, receive, send, known)
            case _:
                await refuse_method(scope, send, "POST" if len(tail) == 3 else "GET")

    async def audit_sync(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        match scope["method"]:
            case "GET" | "HEAD":
                if "heal" in _query(scope):
                    raise BadRequest("Healing changes something: use POST.", field="heal")
                await self._run(index.AUDIT, scope, receive, send)
            case "POST":
                await self._run(index.AUDIT, scope, receive, send)
            case _:
                await refuse_method(scope, send, "GET, POST")

    async def search(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            arguments = _query(scope)
            if "tags" in arguments:
                arguments["tags"] = arguments["tags"].split(",")
            answer = await self._call(search_knowledge.TOOL, scope, arguments, from_text=True)
            await send_json(scope, send, 200, answer)
        elif scope["method"] == "POST":
            await self._run(search_knowledge.TOOL, scope, receive, send)
        else:
            await refuse_method(scope, send, "GET, POST")

    def posted(self, tool: Tool) -> Endpoint:
        """A tool whose arguments are the body of a POST."""

        async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST":
                await self._run(tool, scope, receive, send)
            else:
                await refuse_method(scope, send, "POST")

        return serve

    async def _run(
        self,
        tool: Tool,
        scope: HttpScope,
        receive: Receive,
        send: Send,
        known: dict[str, Any] | None = None,
        status: int = 200,
    ) -> None:
        arguments = _query(scope)
        from_url = scope["method"] in ("GET", "HEAD", "DELETE")
        if not from_url:
            body: bytes = scope[_BODY_KEY]
            arguments.update(parse_object(body) if body else {})
        answer = await self._call(tool, scope, _joined(arguments, known or {}), from_text=from_url)
        is_new = answer.get("status") == "created"
        await send_json(scope, send, status if is_new else 200, answer)

    async def _call(
        self, tool: Tool, scope: HttpScope, arguments: dict[str, Any], *, from_text: bool
    ) -> Answer:
        call = Call(self._runtime, scope[_PRINCIPAL_KEY], request_id(scope))
        self._authenticator.require_scope(call.principal, tool.effect)
        return await call_tool(tool, call, arguments, from_text=from_text)


def _segments(scope: HttpScope) -> list[bytes]:
    """What follows `/documents/`, as it was sent: an encoded slash does not part segments."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    # `/%64ocuments/…` leads here too, but what follows would not be where it is looked for.
    if not raw.startswith(DOCUMENTS_PATH.encode()):
        raise NotFound("Nothing is served at this URL; write /documents/ plainly.")
    return raw.partition(b"?")[0][len(DOCUMENTS_PATH) :].split(b"/")


def _revisions_tail(segments: list[bytes]) -> int | None:
    """How many segments at the end speak of revisions, or None."""
    for count in (1, 2, 3):
        if len(segments) > count and segments[-count] == b"revisions":
            rest = segments[len(segments) - count + 1 :]
            if not rest or rest == [b"diff"] or (rest[0].isdigit() and rest[1:] in _AFTER_NUMBER):
                return count
    return None


def _whole_number(digits: bytes) -> int:
    if len(digits) > len(str(REVISION_MAX)):
        raise InvalidArgument("The revision is not a number a document can have.", field="revision")
    return int(digits)


def _decoded(segments: list[bytes]) -> str:
    try:
        return unquote_to_bytes(b"/".join(segments)).decode()
    except UnicodeDecodeError:
        raise BadRequest("The URL is not valid UTF-8.", field="path") from None


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
            raise BadRequest(f"{name!r} is given twice in the query string.", field=name)
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


def _joined(arguments: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """What the URL's path says cannot be said again, differently, beside it."""
    if "path" in known and not arguments.keys().isdisjoint({"path", "document_id", *known}):
        raise BadRequest("The path is in the URL already.", field="path")
    return {**arguments, **known}

"""Documents as MCP resources: `zibaldone:///<path>`, listed and read by tools of the catalogue."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

import orjson

from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.limits import COMPLETIONS_MAX, LIST_LIMIT_MAX
from zibaldone.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from zibaldone.protocol.long_answers import quoted
from zibaldone.tools.call import call_tool, require_tool
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.documents.list_documents import DocumentList
from zibaldone.tools.spec import AnyTool, Call

_LIST, _READ = "list_documents", "get_document_for_rewrite"

URI_START = "zibaldone:///"
RESOURCE_NOT_FOUND = -32002
"""The legacy revisions' code for a resource that is not there; modern ones use invalid params."""


class ResourceNotFound(ProtocolError):
    def __init__(self, uri: str) -> None:
        super().__init__(RESOURCE_NOT_FOUND, f"Resource not found: {uri[:256]}", {"uri": uri[:256]})


_TEMPLATES = [
    {
        "uriTemplate": URI_START + "{+path}",
        "name": "document",
        "title": "A document by its path",
        "description": "Any document of the knowledge base.",
    }
]


def no_completion() -> dict[str, Any]:
    """Made anew each time: whoever answers adds to it."""
    return {"completion": {"values": [], "hasMore": False}}


def uri_of(document_id: str) -> str:
    return URI_START + quote(document_id, safe="/")


class Resources:
    """Without the tools that list and read documents there are no resources."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._list = catalogue.by_name.get(_LIST)
        self._read = catalogue.by_name.get(_READ)

    @property
    def are_offered(self) -> bool:
        return self._list is not None and self._read is not None

    @property
    def templates(self) -> list[dict[str, str]]:
        return _TEMPLATES if self.are_offered else []

    async def page(self, cursor: str | None, call: Call) -> dict[str, Any]:
        if self._list is None:
            return {"resources": []}
        try:
            listed = await _listed(self._list, call, {"limit": LIST_LIMIT_MAX, "cursor": cursor})
        except InvalidArgument as problem:
            raise ProtocolError(INVALID_PARAMS, problem.message) from None
        result: dict[str, Any] = {
            "resources": [
                {
                    "uri": uri_of(item["document_id"]),
                    "name": item["document_id"],
                    **({"title": item["title"]} if item["title"] else {}),
                }
                for item in listed["items"]
            ]
        }
        if "next_cursor" in listed:
            result["nextCursor"] = listed["next_cursor"]
        return result

    async def read(self, uri: str, call: Call) -> dict[str, Any]:
        if self._read is None:
            raise ResourceNotFound(uri)
        try:
            document = await call_tool(self._read, call, {"path": _path_of(uri)})
        except (NotFound, InvalidArgument, UnicodeDecodeError):
            raise ResourceNotFound(uri) from None
        content = {
            "uri": uri_of(document["document_id"]),
            "mimeType": document["mime"],
            "text": await quoted(document["content"], call.principal.key_id),
        }
        return {"contents": [content]}

    def require_listing(self, call: Call) -> None:
        """Raise unless the caller may see the paths of documents."""
        if self._list is not None:
            require_tool(call, self._list)

    async def complete(self, argument: str, value: str, call: Call) -> dict[str, Any]:
        """Document paths that start with what was typed."""
        self.require_listing(call)
        if self._list is None or argument not in ("path", "prefix"):
            return no_completion()
        try:
            listed = await _listed(self._list, call, {"prefix": value, "limit": COMPLETIONS_MAX})
        except InvalidArgument as problem:
            raise ProtocolError(INVALID_PARAMS, problem.message) from None
        values = [item["document_id"] for item in listed["items"]]
        return {"completion": {"values": values, "hasMore": "next_cursor" in listed}}


def _path_of(uri: str) -> str:
    if not uri.startswith(URI_START):
        raise ResourceNotFound(uri)
    return unquote(uri[len(URI_START) :], errors="strict")


async def _listed(tool: AnyTool, call: Call, arguments: dict[str, Any]) -> DocumentList:
    answer = await call_tool(tool, call, arguments)
    values: DocumentList = orjson.loads(orjson.dumps(answer))  # its items may be JSON already
    return values

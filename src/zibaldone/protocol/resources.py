"""Documents as MCP resources: `zibaldone:///<path>`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

import orjson

from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.limits import COMPLETIONS_MAX, LIST_LIMIT_MAX
from zibaldone.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from zibaldone.tools.call import call_tool, require_tool
from zibaldone.tools.documents import get_document_for_rewrite, list_documents
from zibaldone.tools.documents.list_documents import DocumentList
from zibaldone.tools.spec import Call

URI_START = "zibaldone:///"
RESOURCE_NOT_FOUND = -32002
"""The legacy revisions' code for a resource that is not there; modern ones use invalid params."""


class ResourceNotFound(ProtocolError):
    def __init__(self, uri: str) -> None:
        super().__init__(RESOURCE_NOT_FOUND, f"Resource not found: {uri[:256]}", {"uri": uri[:256]})


TEMPLATES = [
    {
        "uriTemplate": URI_START + "{+path}",
        "name": "document",
        "title": "A document by its path",
        "description": "Any document of the knowledge base.",
    }
]


def uri_of(document_id: str) -> str:
    return URI_START + quote(document_id, safe="/")


async def page(cursor: str | None, call: Call) -> dict[str, Any]:
    try:
        listed = await _list(call, {"limit": LIST_LIMIT_MAX, "cursor": cursor})
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


async def read(uri: str, call: Call) -> dict[str, Any]:
    try:
        path = _path_of(uri)
        document = await call_tool(get_document_for_rewrite.TOOL, call, {"path": path})
    except (NotFound, InvalidArgument, UnicodeDecodeError):
        raise ResourceNotFound(uri) from None
    content = {
        "uri": uri_of(document["document_id"]),
        "mimeType": document["mime"],
        "text": document["content"],
    }
    return {"contents": [content]}


def _path_of(uri: str) -> str:
    if not uri.startswith(URI_START):
        raise ResourceNotFound(uri)
    return unquote(uri[len(URI_START) :], errors="strict")


async def complete(argument: str, value: str, call: Call) -> dict[str, Any]:
    """Document paths that start with what was typed."""
    require_tool(call, list_documents.TOOL)
    if argument not in ("path", "prefix"):
        return {"completion": {"values": [], "hasMore": False}}
    try:
        listed = await _list(call, {"prefix": value, "limit": COMPLETIONS_MAX})
    except InvalidArgument as problem:
        raise ProtocolError(INVALID_PARAMS, problem.message) from None
    values = [item["document_id"] for item in listed["items"]]
    return {"completion": {"values": values, "hasMore": "next_cursor" in listed}}


async def _list(call: Call, arguments: dict[str, Any]) -> DocumentList:
    answer = await call_tool(list_documents.TOOL, call, arguments)
    values: DocumentList = orjson.loads(orjson.dumps(answer))  # its items may be JSON already
    return values

"""Documents as MCP resources: `zibaldone:///<path>`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from zibaldone.access.decide import require_effect
from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.keep.commit import live_document
from zibaldone.keep.reads import list_page
from zibaldone.limits import COMPLETIONS_MAX, LIST_LIMIT_MAX
from zibaldone.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from zibaldone.text import normalize
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


def page(cursor: str | None, call: Call) -> dict[str, Any]:
    require_effect(call.principal, "read")
    try:
        found = call.runtime.store.read_now(
            call.principal.tenant,
            lambda reader: list_page(
                reader,
                "",
                limit=LIST_LIMIT_MAX,
                offset=0,
                cursor=cursor,
                bytes_max=call.runtime.limits.list_response_bytes_max,
            ),
        )
    except InvalidArgument as problem:
        raise ProtocolError(INVALID_PARAMS, problem.message) from None
    result: dict[str, Any] = {
        "resources": [
            {
                "uri": uri_of(item["document_id"]),
                "name": item["document_id"],
                **({"title": item["title"]} if item["title"] else {}),
            }
            for item in found.items()
        ]
    }
    if found.next_cursor is not None:
        result["nextCursor"] = found.next_cursor
    return result


def read(uri: str, call: Call) -> dict[str, Any]:
    require_effect(call.principal, "read")
    if not uri.startswith(URI_START):
        raise ResourceNotFound(uri)
    try:
        document_id = normalize.document_id(unquote(uri[len(URI_START) :], errors="strict"))
        document = call.runtime.store.read_now(
            call.principal.tenant, lambda reader: live_document(reader, document_id)
        )
    except (NotFound, InvalidArgument, UnicodeDecodeError):
        raise ResourceNotFound(uri) from None
    return {
        "contents": [{"uri": uri_of(document_id), "mimeType": document.mime, "text": document.body}]
    }


def complete(argument: str, value: str, call: Call) -> dict[str, Any]:
    """Document paths that start with what was typed."""
    require_effect(call.principal, "read")
    if argument not in ("path", "prefix"):
        return {"completion": {"values": [], "hasMore": False}}
    try:
        prefix = normalize.prefix(value)
    except InvalidArgument as problem:
        raise ProtocolError(INVALID_PARAMS, problem.message) from None
    heads = call.runtime.store.read_now(
        call.principal.tenant,
        lambda reader: reader.documents.heads(prefix, limit=COMPLETIONS_MAX + 1),
    )
    values = [head.document_id for head in heads[:COMPLETIONS_MAX]]
    return {"completion": {"values": values, "hasMore": len(heads) > COMPLETIONS_MAX}}

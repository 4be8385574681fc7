"""The OpenAPI document, made from the tools' own schemas."""

from __future__ import annotations

from typing import Any

import zibaldone
from zibaldone.tools.documents import (
    delete_document,
    get_document,
    history,
    list_documents,
    patch_document,
    search_knowledge,
    update_document,
    upload_document,
)
from zibaldone.tools.schema import input_schema
from zibaldone.tools.spec import AnyTool
from zibaldone.tools.upkeep import index
from zibaldone.web.http import HttpScope, Receive, Send, send_json
from zibaldone.web.rest import POSTED

_ERROR = {
    "type": "object",
    "required": ["code", "message", "details", "request_id"],
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
        "request_id": {"type": "string"},
    },
}

# (method, URL, tool, arguments that stand in the URL's path)
_OPERATIONS: tuple[tuple[str, str, AnyTool, tuple[str, ...]], ...] = (
    ("post", "/documents", upload_document.TOOL, ()),
    ("get", "/documents", list_documents.TOOL, ()),
    ("get", "/documents/{path}", get_document.TOOL, ("path",)),
    ("put", "/documents/{path}", update_document.TOOL, ("path",)),
    ("patch", "/documents/{path}", patch_document.TOOL, ("path",)),
    ("delete", "/documents/{path}", delete_document.TOOL, ("path",)),
    ("get", "/documents/{path}/revisions", history.HISTORY, ("path",)),
    ("get", "/documents/{path}/revisions/diff", history.DIFF, ("path",)),
    ("get", "/documents/{path}/revisions/{revision}", history.REVISION, ("path", "revision")),
    (
        "post",
        "/documents/{path}/revisions/{revision}/restore",
        history.RESTORE,
        ("path", "revision"),
    ),
    ("get", "/search", search_knowledge.TOOL, ()),
    ("get", "/kb/audit-sync", index.AUDIT, ()),
    *(("post", url, tool, ()) for url, tool in POSTED.items()),
)


class OpenApi:
    def __init__(self) -> None:
        self._document = build()

    async def document(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await send_json(scope, send, 200, self._document)


def build() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for method, url, tool, in_path in _OPERATIONS:
        paths.setdefault(url, {})[method] = _operation(method, tool, in_path)
    paths["/documents/{path}/move"] = {
        "post": {
            "operationId": "move_document",
            "summary": "Not implemented: always 501",
            "parameters": [_parameter("path", {"type": "string"}, "path", True)],
            "responses": {"501": _error_response()},
        }
    }
    for url in ("/health", "/metrics"):
        paths[url] = {"get": {"responses": {"200": {"description": "OK"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Zibaldone", "version": zibaldone.__version__},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }


def _operation(method: str, tool: AnyTool, in_path: tuple[str, ...]) -> dict[str, Any]:
    schema = input_schema(tool)
    required = set(schema.get("required", ()))
    properties = dict(schema["properties"])
    parameters = [_parameter(name, properties.pop(name), "path", True) for name in in_path]
    operation: dict[str, Any] = {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "responses": {
            "201" if tool is upload_document.TOOL else "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            "4XX": _error_response(),
            "5XX": _error_response(),
        },
    }
    if method in ("get", "delete"):
        parameters += [
            _parameter(name, value, "query", name in required) for name, value in properties.items()
        ]
    elif properties:
        body = {**schema, "properties": properties, "required": sorted(required - set(in_path))}
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}},
        }
    operation["parameters"] = parameters
    return operation


def _parameter(name: str, schema: dict[str, Any], place: str, required: bool) -> dict[str, Any]:
    parameter = {"name": name, "in": place, "required": required, "schema": schema}
    if schema.get("type") == "array":
        parameter["explode"] = False  # one value with commas, not the name again and again
    return parameter


def _error_response() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "An error with a stable code", "content": content}

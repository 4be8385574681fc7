"""The OpenAPI document, made from the table of routes and the tools' own schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import zibaldone
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.schema import input_schema, result_schema
from zibaldone.tools.spec import AnyTool
from zibaldone.web.http import HttpScope, Receive, Send, send_json
from zibaldone.web.routes import Route

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


class OpenApi:
    def __init__(self, catalogue: Catalogue, routes: Iterable[Route]) -> None:
        self._document = build(catalogue, routes)

    async def document(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        del receive
        await send_json(scope, send, 200, self._document)


def build(catalogue: Catalogue, routes: Iterable[Route]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(route.path, {})
        if route.tool is None:
            operations[route.method.lower()] = _without_tool(route)
        else:
            operation = _operation(route, catalogue.by_name[route.tool])
            operations[route.method.lower()] = operation
    _make_ids_unique(paths)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Zibaldone", "version": zibaldone.__version__},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }


def _without_tool(route: Route) -> dict[str, Any]:
    if not route.refusal:
        return {"responses": {"200": {"description": "OK"}}}
    return {
        "summary": "Not implemented",
        "description": route.refusal,
        "parameters": [
            _parameter(name, {"type": "string"}, "path", True) for name in _names(route)
        ],
        "responses": {"501": _error_response()},
    }


def _operation(route: Route, tool: AnyTool) -> dict[str, Any]:
    schema = input_schema(tool)
    names = _names(route)
    required = set(schema.get("required", ()))
    properties = dict(schema["properties"])
    parameters = [_parameter(name, properties.pop(name), "path", True) for name in names]
    operation: dict[str, Any] = {
        "operationId": tool.name,
        "summary": tool.title,
        "description": tool.description,
        "responses": {
            **{str(status): _answer(tool) for status in sorted({200, route.status})},
            "4XX": _error_response(),
            "5XX": _error_response(),
        },
    }
    if route.is_text:
        parameters += [
            _parameter(name, value, "query", name in required)
            for name, value in {**properties, **route.parameters}.items()
        ]
    elif properties:
        body = {**schema, "properties": properties, "required": sorted(required - set(names))}
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}},
        }
    operation["parameters"] = parameters
    return operation


def _names(route: Route) -> list[str]:
    return re.findall(r"\{(\w+)\}", route.path)


def _make_ids_unique(paths: dict[str, dict[str, Any]]) -> None:
    """A tool that is served by two methods has an id for each."""
    seen: set[str] = set()
    for operations in paths.values():
        for method, operation in operations.items():
            name = operation.get("operationId")
            if name in seen:
                operation["operationId"] = f"{name}.{method}"
            elif name is not None:
                seen.add(name)


def _answer(tool: AnyTool) -> dict[str, Any]:
    content = {"application/json": {"schema": result_schema(tool)}}
    return {"description": "OK", "content": content}


def _parameter(name: str, schema: Any, place: str, required: bool) -> dict[str, Any]:
    parameter = {"name": name, "in": place, "required": required, "schema": schema}
    if schema.get("type") == "array":
        parameter["explode"] = False  # one value with commas, not the name again and again
    return parameter


def _error_response() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "An error with a stable code", "content": content}

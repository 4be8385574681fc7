"""Answers are what their tools declare: checked wherever tests see one."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.drivers.catalogues import OFFERED
from zibaldone.tools.catalogue import underscored
from zibaldone.tools.schema import output_schema, result_schema
from zibaldone.web.rest import Pattern, patterns_of
from zibaldone.web.routes import ROUTES, Route

_TOOLS = {underscored(tool.name): tool for tool in OFFERED.values()}
_EXACT: dict[tuple[str, str], Route] = {
    (route.method, route.path): route for route in ROUTES if "{" not in route.path
}
_PATTERNS: list[Pattern] = patterns_of([route for route in ROUTES if "{" in route.path])


def check_answer(tool_name: str, answer: dict[str, Any]) -> None:
    """An answer has what its tool declares, and nothing else; tools of a test's own may not."""
    tool = _TOOLS.get(underscored(tool_name))
    if tool is None:
        return
    problems = [error.message for error in _listed(tool.name).iter_errors(answer)]
    if not (tool.is_missing_an_answer and "error" in answer):
        problems += [error.message for error in _declared(tool.name).iter_errors(answer)]
    assert not problems, (tool.name, problems)


def check_response(response: httpx.Response) -> None:
    """For REST: whatever a route answers is its tool's answer."""
    route = _route_of(response.request)
    if route is None or route.tool is None or response.status_code not in (200, 201):
        return
    response.read()
    check_answer(route.tool, response.json())


def _route_of(request: httpx.Request) -> Route | None:
    raw = urlsplit(str(request.url)).path
    if exact := _EXACT.get((request.method, raw)):
        return exact
    for pattern in _PATTERNS:
        if pattern.match(raw.encode()) is not None and request.method in pattern.by_method:
            return None if request.method == "HEAD" else pattern.by_method[request.method]
    return None


@cache
def _listed(name: str) -> Any:
    return Draft202012Validator(output_schema(OFFERED[name]))


@cache
def _declared(name: str) -> Any:
    return Draft202012Validator(_closed(result_schema(OFFERED[name])))


def _closed(node: Any) -> Any:
    """A schema that admits no key it does not name."""
    if isinstance(node, list):
        return [_closed(part) for part in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items() if key != "properties"}
    if "properties" in node:
        closed["properties"] = {name: _closed(part) for name, part in node["properties"].items()}
        closed["additionalProperties"] = False
    return closed

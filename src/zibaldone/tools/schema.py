"""A tool's arguments and answer as JSON Schema, made small: clients read tool lists in full."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from zibaldone.limits import REVISION_MAX
from zibaldone.tools.spec import AnyTool

_TYPED_KEYS_MAX = 4
"""Types of more keys would make the list of the ten document tools too long (9 KB)."""


@cache
def input_schema(tool: AnyTool) -> dict[str, Any]:
    schema = tool.arguments.model_json_schema(by_alias=False)
    compact: dict[str, Any] = _compacted(schema, schema.pop("$defs", {}), drops_null=True)
    compact.setdefault("properties", {})
    return compact


@cache
def result_schema(tool: AnyTool) -> dict[str, Any]:
    """The whole shape of an answer. Keys that it does not name may be added later."""
    schema = TypeAdapter(tool.result).json_schema()
    compact: dict[str, Any] = _compacted(schema, schema.pop("$defs", {}), drops_null=False)
    compact.setdefault("properties", {})
    return compact


@cache
def output_schema(tool: AnyTool) -> dict[str, Any]:
    """What MCP lists of an answer: the keys that are always there, of short answers with types."""
    if tool.is_missing_an_answer:  # no key is always there
        return {"type": "object", "properties": {"error": {"type": "string"}}}
    whole = result_schema(tool)
    required = whole.get("required", [])
    if len(required) > _TYPED_KEYS_MAX:
        return {"type": "object", "required": required}
    properties = {name: _type_only(whole["properties"][name]) for name in required}
    return {"type": "object", "properties": properties, "required": required}


def _type_only(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        return {"type": schema["type"]}
    kinds = [option["type"] for option in schema.get("anyOf", ()) if "type" in option]
    return {"type": kinds} if kinds else {}


def _compacted(node: Any, definitions: dict[str, Any], *, drops_null: bool) -> Any:
    """Without titles and references.

    `drops_null`: also without the null half of optional fields; nobody has to send a null.
    """
    if isinstance(node, list):
        return [_compacted(part, definitions, drops_null=drops_null) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        referred = definitions[node["$ref"].rpartition("/")[2]]
        merged = {**referred, **_without(node, "$ref")}
        return _compacted(merged, definitions, drops_null=drops_null)
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        merged = {**_without(node, "anyOf"), **options[0]}
        option = _compacted(merged, definitions, drops_null=drops_null)
        return option if drops_null else _nullable(option)
    result = {}
    for key, value in node.items():
        is_noise = (key == "title" and isinstance(value, str)) or (
            key == "default" and value in (None, "", [], {}, False)
        )
        is_noise = is_noise or (key == "maximum" and value == REVISION_MAX)  # of any JSON number
        if key == "properties":
            # Arguments that are words of Python (`return`) have an underscore in the model only.
            result[key] = {
                name.rstrip("_"): _compacted(part, definitions, drops_null=drops_null)
                for name, part in value.items()
            }
        elif key == "description" and "properties" in node:
            continue  # the model's docstring is for readers of the code
        elif not is_noise:
            result[key] = _compacted(value, definitions, drops_null=drops_null)
    return result


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _without(node: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != key}

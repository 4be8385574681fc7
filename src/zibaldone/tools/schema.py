"""A tool's arguments and answer as JSON Schema, made small: clients read tool lists in full."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from zibaldone.tools.spec import AnyTool

_MISSING: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


@cache
def input_schema(tool: AnyTool) -> dict[str, Any]:
    schema = tool.arguments.model_json_schema(by_alias=False)
    definitions = schema.pop("$defs", {})
    compact: dict[str, Any] = _compacted(schema, definitions)
    compact.setdefault("properties", {})
    return compact


@cache
def result_schema(tool: AnyTool) -> dict[str, Any]:
    """The whole shape of an answer. Keys that it does not name may be added later."""
    schema = TypeAdapter(tool.result).json_schema()
    definitions = schema.pop("$defs", {})
    compact: dict[str, Any] = _compacted(schema, definitions)
    return compact


@cache
def output_schema(tool: AnyTool) -> dict[str, Any]:
    """What MCP lists of an answer: the keys that are always there, and the type of each."""
    whole = result_schema(tool)
    required = whole.get("required", [])
    properties = {name: _type_only(whole["properties"][name]) for name in required}
    if tool.is_missing_an_answer:  # then none of them is there
        return {"type": "object", "properties": properties}
    return {"type": "object", "properties": properties, "required": required}


def _type_only(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        return {"type": schema["type"]}
    kinds = [option["type"] for option in schema.get("anyOf", ()) if "type" in option]
    return {"type": kinds} if kinds else {}


def _compacted(node: Any, definitions: dict[str, Any]) -> Any:
    """Without titles, references and the null half of optional fields."""
    if isinstance(node, list):
        return [_compacted(part, definitions) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        referred = definitions[node["$ref"].rpartition("/")[2]]
        return _compacted({**referred, **_without(node, "$ref")}, definitions)
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return _compacted({**_without(node, "anyOf"), **options[0]}, definitions)
    result = {}
    for key, value in node.items():
        is_noise = (key == "title" and isinstance(value, str)) or (
            key == "default" and value in (None, "", [], {}, False)
        )
        if key == "properties":
            # Arguments that are words of Python (`return`) have an underscore in the model only.
            result[key] = {
                name.rstrip("_"): _compacted(part, definitions) for name, part in value.items()
            }
        elif key == "description" and "properties" in node:
            continue  # the model's docstring is for readers of the code
        elif not is_noise:
            result[key] = _compacted(value, definitions)
    return result


def _without(node: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != key}

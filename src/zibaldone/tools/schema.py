"""A tool's input as JSON Schema, as small as it can be said: every client reads it in full."""

from __future__ import annotations

from functools import cache
from typing import Any

from zibaldone.tools.spec import AnyTool


@cache
def input_schema(tool: AnyTool) -> dict[str, Any]:
    schema = tool.arguments.model_json_schema(by_alias=False)
    definitions = schema.pop("$defs", {})
    compact: dict[str, Any] = _compacted(schema, definitions)
    compact.setdefault("properties", {})
    return compact


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

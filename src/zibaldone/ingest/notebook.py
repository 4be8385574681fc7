"""Jupyter notebooks to Markdown: their texts, and their code in fenced blocks. Outputs are left
out: they repeat what the code says, or are pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from zibaldone.errors import InvalidArgument
from zibaldone.ingest.rst import fenced


def notebook_to_markdown(text: str) -> str:
    try:
        notebook = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        raise InvalidArgument(f"The notebook is not JSON: {problem}", field="source") from None
    if not isinstance(notebook, dict):
        raise InvalidArgument("The notebook is not a JSON object.", field="source")
    language = _language(notebook)
    parts = [part for cell in _cells(notebook) if (part := _part(cell, language))]
    return "\n\n".join(parts) + "\n"


def _cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of version 4 and later; before, they were in worksheets."""
    sheets = notebook.get("worksheets")
    for holder in (notebook, *(sheets if isinstance(sheets, list) else ())):
        cells = holder.get("cells") if isinstance(holder, dict) else None
        yield from (cell for cell in cells or () if isinstance(cell, dict))


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name]).lower()
    return ""


def _part(cell: dict[str, Any], language: str) -> str:
    kind = cell.get("cell_type")
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str) or not source.strip():
        return ""
    source = source.strip("\n")
    if kind == "code":
        return "\n".join(fenced(source.split("\n"), language))
    if kind == "heading":  # of version 3
        level = cell.get("level")
        hashes = "#" * level if isinstance(level, int) and 0 < level < 7 else "#"
        return f"{hashes} {source}"
    return source

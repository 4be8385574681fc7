"""The id of the document that a row becomes: valid as a path, and never the same for two keys."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from zibaldone.model.source import ID_DEFAULT, SourceDefinition
from zibaldone.pull.values import text

_PLACE = re.compile(r"\{([^{}]*)\}")
_PLAIN = frozenset("-_.~!$&'()*+;=@: ")
_EMPTY = "%"
"""No text is encoded as this alone."""


def id_maker(definition: SourceDefinition) -> Callable[[Sequence[Any]], str]:
    """A function from the values of a row's key to the id of its document."""
    template, name = definition.document.id, definition.name
    if template == ID_DEFAULT and len(definition.key) == 1:
        return lambda key: f"{name}:{escaped(key[0])}"
    pieces = _PLACE.split(template)  # texts at even places, names at odd ones

    def make(key: Sequence[Any]) -> str:
        parts = dict(zip(definition.key, map(escaped, key), strict=True))
        values = {**parts, "name": name, "key": ",".join(parts.values())}
        return "".join(
            values[piece] if number % 2 else piece for number, piece in enumerate(pieces)
        )

    return make


def escaped(value: Any) -> str:
    """A part of a key. Percent-encoded is what has a meaning in ids, and what they could change."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "%x" + bytes(value).hex()  # no text begins so: a percent sign is encoded
    shown = text(value)
    if shown.isascii() and shown.isalnum():
        return shown
    if not shown:
        return _EMPTY
    # A letter that has several forms would be changed to one of them.
    keeps_letters = shown.isascii() or unicodedata.is_normalized("NFC", shown)
    last = len(shown) - 1
    return "".join(
        char
        if (char.isalnum() and (char.isascii() or (keeps_letters and not _joins(char))))
        or (char in _PLAIN and not (char in ". " and number in (0, last)))
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for number, char in enumerate(shown)
    )


def _joins(char: str) -> bool:
    """Whether it could become one with the sign before it."""
    return bool(unicodedata.combining(char)) or "\u1100" <= char <= "\u11ff"

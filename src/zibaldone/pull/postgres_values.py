"""Values of PostgreSQL that Python's types cannot hold come as the text that PostgreSQL writes.

`infinity`, dates before year 1, 24:00:00, numbers of thousands of digits in JSON: the driver, or
whoever uses what it gives, ends in an error at such a value. One row would stop the sync of its
table.
"""

from __future__ import annotations

import json
from typing import Any

from zibaldone import extras
from zibaldone.text.json_values import is_nested_deeper

_TYPES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb")

_DEPTH_MAX = 100
"""Of lists and objects in one another. Deeper ones end in errors wherever they are used."""


def load_leniently(raw: Any) -> None:
    """`raw`: a connection of psycopg; holds for all that is read on it from now on."""
    psycopg = extras.require("pull", "psycopg")
    for name in _TYPES:
        oid = psycopg.adapters.types[name].oid
        usual = raw.adapters.get_loader(oid, psycopg.pq.Format.TEXT)
        raw.adapters.register_loader(oid, _lenient(psycopg, usual))


def _lenient(psycopg: Any, usual: Any) -> Any:
    class Lenient(psycopg.adapt.Loader):  # type: ignore[misc]
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._load = usual(oid, context).load

        def load(self, data: Any) -> Any:
            try:
                value = self._load(data)
            except (psycopg.DataError, ValueError, OverflowError, RecursionError):
                return _text(data)
            if isinstance(value, str | list | dict) and _is_odd(value, bytes(data)):
                return _text(data)
            return value

    return Lenient


def _text(data: Any) -> str:
    return bytes(data).decode("utf-8", "replace")


def _is_odd(value: Any, data: bytes) -> bool:
    """Whether JSON that could be read cannot be written: it is too deep, or an escape of it stands
    for half a character."""
    if is_nested_deeper(value, _DEPTH_MAX):
        return True
    if b"\\u" not in data:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False

"""Escape the operators of a full-text query, for servers that pass queries on unescaped."""

from __future__ import annotations

import re

_OPERATORS = re.compile(r'&&|\|\||[+\-!(){}\[\]^"~*?:\\/]')


def escape_query(text: str) -> str:
    """The text with one backslash before each operator: `apt-28` becomes `apt\\-28`.

    `&&` and `||` are one operator each; a single `&` or `|` is none.
    """
    return _OPERATORS.sub(lambda match: "\\" + match[0], text)

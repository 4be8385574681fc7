"""How much a text looks like program code, by its signs. Pure."""

from __future__ import annotations

import re

_SIGNS = re.compile(r"[(){}\[\]=_;<>]")

_PROSE_SHARE = 0.03
"""Prose has fewer of these signs among its characters, even with links and brackets in it."""
_CODE_SHARE = 0.07
"""Most code has at least so many."""


def code_likeness(text: str) -> float:
    """From 0, prose, to 1, code."""
    if not text:
        return 0.0
    share = len(_SIGNS.findall(text)) / len(text)
    return min(1.0, max(0.0, (share - _PROSE_SHARE) / (_CODE_SHARE - _PROSE_SHARE)))

"""Which scripts a model knows: a model of English says nothing sensible about Chinese."""

from __future__ import annotations

import re

_LATIN_LETTER = re.compile("[a-z]", re.IGNORECASE)
_OTHER_LETTER = re.compile(r"[^\W\d_a-z]", re.IGNORECASE)

MOSTLY_FOREIGN = 0.5
SOMEWHAT_FOREIGN = 0.05


def english_trust(text: str) -> float:
    """1 for plain Latin letters, less with accented ones, 0 for another script.

    Accents mark other languages in Latin letters (German, Vietnamese), where an English model still
    helps a little; a text mostly outside Latin is beyond it.
    """
    latin = len(_LATIN_LETTER.findall(text))
    other = len(_OTHER_LETTER.findall(text))
    if latin + other == 0:
        return 1.0
    share = other / (latin + other)
    if share >= MOSTLY_FOREIGN:
        return 0.0
    return 0.5 if share >= SOMEWHAT_FOREIGN else 1.0

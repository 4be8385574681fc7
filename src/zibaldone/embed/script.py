"""Which scripts a model can read: an English model gives useless vectors for Chinese."""

from __future__ import annotations

import re

_LETTER = re.compile(r"[^\W\d_]")
_PLAIN_LATIN = re.compile("[a-z]", re.IGNORECASE)
_MANY_LANGUAGES = re.compile(
    "[a-z\u00aa-\u024f\u1e00-\u1eff"  # Latin
    "\u0400-\u052f"  # Cyrillic
    "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc"  # Arabic
    "\u0e00-\u0e7f"  # Thai
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uff21-\uff3a\uff41-\uff5a]",  # Latin, full width
    re.IGNORECASE,
)
_VIETNAMESE = re.compile("[\u0102\u0103\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")

MOSTLY_FOREIGN = 0.5
SOMEWHAT_FOREIGN = 0.05


def english_trust(text: str) -> float:
    """1 for plain Latin letters, less with accented ones, 0 for another script.

    Accents are a sign of other languages (German, Vietnamese), for which an English model still
    helps a little. It cannot read a text that is mostly in another script.
    """
    letters = len(_LETTER.findall(text))
    return _trust(letters - len(_PLAIN_LATIN.findall(text)), letters)


def multilingual_trust(text: str) -> float:
    """1 for the scripts of the 15 languages, 0 for others (Greek, Hebrew, Devanagari).

    Vietnamese is not one of them although its letters are Latin; letters only it has identify it.
    """
    letters = len(_LETTER.findall(text))
    foreign = letters - len(_MANY_LANGUAGES.findall(text))
    trust = _trust(foreign, letters)
    is_vietnamese = len(_VIETNAMESE.findall(text)) > SOMEWHAT_FOREIGN * letters
    return min(trust, 0.5) if is_vietnamese else trust


def _trust(foreign: int, letters: int) -> float:
    share = foreign / letters if letters else 0.0
    if share >= MOSTLY_FOREIGN:
        return 0.0
    return 0.5 if share >= SOMEWHAT_FOREIGN else 1.0

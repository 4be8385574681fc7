"""Which scripts and languages a model can read: an English one knows no Chinese, little German."""

from __future__ import annotations

import re

from zibaldone.text.language import other_language_of
from zibaldone.text.words import fold_case, lexemes

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
_LITTLE = 0.5
"""The trust in vectors of a language that the model has met here and there."""


def english_trust(text: str) -> float:
    """1 for English, less for another language or accented letters, 0 for another script.

    For other languages of the Latin script (German, Vietnamese) an English model still helps a
    little. It cannot read a text that is mostly in another script.
    """
    letters = len(_LETTER.findall(text))
    trust = _trust(letters - len(_PLAIN_LATIN.findall(text)), letters)
    is_foreign = trust > _LITTLE and bool(other_language_of(lexemes(fold_case(text))))
    return _LITTLE if is_foreign else trust


def multilingual_trust(text: str) -> float:
    """1 for the scripts of the 15 languages, 0 for others (Greek, Hebrew, Devanagari).

    Vietnamese is not one of them although its letters are Latin; letters only it has identify it.
    """
    letters = len(_LETTER.findall(text))
    foreign = letters - len(_MANY_LANGUAGES.findall(text))
    trust = _trust(foreign, letters)
    is_vietnamese = len(_VIETNAMESE.findall(text)) > SOMEWHAT_FOREIGN * letters
    return min(trust, _LITTLE) if is_vietnamese else trust


def _trust(foreign: int, letters: int) -> float:
    share = foreign / letters if letters else 0.0
    if share >= MOSTLY_FOREIGN:
        return 0.0
    return _LITTLE if share >= SOMEWHAT_FOREIGN else 1.0

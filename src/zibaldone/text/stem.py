"""English stems: Porter's algorithm with its author's later changes, as FTS5's `porter` has it.

Snowball's `porter`, which PyStemmer offers, is the algorithm as first published. Three rules bring
it up to date: `-logy` loses its y like the rest of its family (technology, technological), `-bly`
goes with `-ble` (possibly, possible), and every doubled consonant is undone (trekked, trek).
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache

import Stemmer

_BYTES_MIN, _BYTES_MAX = 3, 64
"""Shorter and longer terms stay as they are: `us` is no plural, and a blob has no ending."""

_HAS_SYLLABLE = re.compile("(?:[^aeiou][^aeiouy]*[aeiouy][aeiou]*|[aeiou]+)[^aeiou]")
"""Porter's m > 0: a run of vowels, then a consonant. A y counts as a vowel after a consonant."""

_FROM_Y = re.compile("[iy](?:s|eds?|ings?)?|ies")
_FROM_VERB = re.compile("(?:ed|ing)s?")

_by_thread = threading.local()


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The stem of a case-folded word. Words without an English ending stay as they are."""
    size_bytes = len(word) if word.isascii() else len(word.encode())
    if not _BYTES_MIN <= size_bytes <= _BYTES_MAX:
        return word
    stemmed = _first_published(word)
    last = stemmed[-1]
    if last == "i":
        return _with_y_undone(word, stemmed)
    is_doubled = stemmed[-2:] == last * 2 and last not in "aeioulsz" and last.isascii()
    if is_doubled and _FROM_VERB.fullmatch(word, len(stemmed)):
        return _first_published(stemmed[:-1])
    return stemmed


def _with_y_undone(word: str, stemmed: str) -> str:
    if not _FROM_Y.fullmatch(word, len(stemmed) - 1):
        return stemmed
    if stemmed.endswith("logi") and _HAS_SYLLABLE.match(stemmed[:-4]):
        return stemmed[:-1]
    if stemmed.endswith("bli") and _HAS_SYLLABLE.match(stemmed[:-3]):
        return _first_published(stemmed[:-1] + "e")
    return stemmed


def _first_published(word: str) -> str:
    stemmer = getattr(_by_thread, "stemmer", None)
    if stemmer is None:  # one for each thread: it works in a buffer of its own
        stemmer = _by_thread.stemmer = Stemmer.Stemmer("porter", 0)
    stemmed: str = stemmer.stemWord(word)
    return stemmed

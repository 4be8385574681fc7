"""Porter's English stems, the same that FTS5's `porter` tokenizer makes, for words we look at here.

The index stems for itself; this is for showing which words of a passage answered a query.
"""

from __future__ import annotations

import re
from functools import lru_cache

# In Porter's terms: a word is [C](VC)^m[V], C and V being runs of consonants and of vowels.
_C = "[^aeiou][^aeiouy]*"
_V = "[aeiouy][aeiou]*"
_START = f"(?:{_C}{_V}|[aeiou]+)"  # y is a consonant where a word begins with it
_M_OVER_0 = re.compile(f"{_START}{_C}")
_M_IS_1 = re.compile(f"{_START}{_C}(?:{_V})?$")
_M_OVER_1 = re.compile(f"{_START}{_C}{_V}{_C}")
_HAS_VOWEL = re.compile(_START)
_SHORT = re.compile(f"{_C}[aeiouy][^aeiouwxy]$")
_DOUBLED = re.compile(r"([^aeioulsz])\1$")


def _table(pairs: str) -> tuple[re.Pattern[str], dict[str, str]]:
    ending_of = dict(pair.split(">") for pair in pairs.split())
    longest_first = sorted(ending_of, key=len, reverse=True)
    return re.compile(f"(?:{'|'.join(longest_first)})$"), ending_of


_STEP_2 = _table(
    "ational>ate tional>tion enci>ence anci>ance izer>ize logi>log bli>ble alli>al entli>ent eli>e "
    "ousli>ous ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous "
    "aliti>al iviti>ive biliti>ble"
)
_STEP_3 = _table("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_STEP_4 = re.compile(
    "(?:al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|(?<=[st])ion|ou|ism|ate|iti|ous|ive|ize)$"
)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The stem of a lower-case word; short words and other scripts stay as they are."""
    if len(word) < 3 or len(word) > 64 or not word.isascii():
        return word
    word = _without_inflection(word)
    for pattern, ending_of in (_STEP_2, _STEP_3):
        if (match := pattern.search(word)) and _M_OVER_0.match(word[: match.start()]):
            word = word[: match.start()] + ending_of[match[0]]
    if (match := _STEP_4.search(word)) and _M_OVER_1.match(word[: match.start()]):
        word = word[: match.start()]
    if word.endswith("e"):
        bare = word[:-1]
        if _M_OVER_1.match(bare) or (_M_IS_1.match(bare) and not _SHORT.match(bare)):
            word = bare
    if word.endswith("ll") and _M_OVER_1.match(word[:-1]):
        word = word[:-1]
    return word


def _without_inflection(word: str) -> str:
    """Step 1: plurals, past tenses, -ing, and y for i."""
    if (word.endswith("sses") and len(word) > 4) or (word.endswith("ies") and len(word) > 3):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed") and len(word) > 3:
        if _M_OVER_0.match(word[:-3]):
            word = word[:-1]
    elif (match := re.search("(?:ed|ing)$", word)) and _HAS_VOWEL.match(word[: match.start()]):
        word = word[: match.start()]
        if word.endswith(("at", "bl", "iz")):
            word += "e"
        elif _DOUBLED.search(word):
            word = word[:-1]
        elif _M_IS_1.match(word) and _SHORT.match(word):
            word += "e"
    if word.endswith("y") and _HAS_VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    return word

"""Where words begin and end in any script, and the forms under which each can be found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from zibaldone.limits import FOLDED_GROWTH_MAX, TERM_CHARS_MAX
from zibaldone.text.normalize import normal_form

STOP_WORDS = frozenset(  # a text reads better than 130 literals
    """a about above after again against all am an and any are as at be because been before being
    below between both but by can could d did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just ll m me
    more most my no nor not now of off on once only or other our out over own re s same she should
    so some such t than that the their them then there these they this those through to too under
    until up ve very was we were what when where which while who whom why will with would you
    your""".split()  # noqa: SIM905
)
"""Of English, in every query: lists of other languages hold English content words (German `die`,
`war`, `man`), so those count only where the language is told (`text.language`)."""

_SIGNS = frozenset("_-.@/\\:#&+")
_JOINT = r"(?:::|_+|[-.@/\\:#&])"
_JOINT_LEVELS = tuple(re.compile(level) for level in (r"[/\\@:#&]+", r"\.", "-"))


def _identifier_tail(word: str) -> str:
    """Pattern of what may follow the first word of an identifier: `.js` or `_extract`, or `++`."""
    end_sign = r"(?:(?:\+\+|#)(?!\w))?"  # c++ and c#, but not the joint of page#part
    # The look-ahead is for speed: most words are followed by a space.
    return rf"(?:(?=[-_.@/\\:#&+])(?:{_JOINT}{word})*{end_sign})?"


_ASCII_PART = re.compile("[a-z0-9]+")
# One character class at the start lets the search skip quickly; then a dot is let through only
# where it begins a name (.net, .gitignore).
_ASCII_LEXEME = re.compile(
    rf"[.a-z0-9](?:(?<!\.)|(?<![\w.]\.)(?=[a-z]))[a-z0-9]*+{_identifier_tail('[a-z0-9]+')}"
)

_CAMEL_HINT = re.compile("[A-Z](?:(?<=[a-z].)|[A-Z][a-z])")
_CAMEL_WORD = re.compile("[A-Za-z0-9]+")
_CAMEL_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")

_INVISIBLE = re.compile("[\u00ad\u200c\u200d\u2060\ufeff]")

# Scripts written without spaces, or (Hangul) with particles joined to the word: Thai, Lao, Myanmar,
# Hangul, Khmer, Kana, Bopomofo, Han.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f"
    "\u109a-\u109d\u1100-\u11ff\u1780-\u17d3\u17d7\u17dc\u17dd\u3005-\u3007\u3021-\u3029\u3031-"
    "\u3035\u303b\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9ef\ua9fa-\ua9fe"
    "\uaa60-\uaa7f\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
)
_UNSPACED_BEYOND_BMP = "\U0001b000-\U0001b16f\U00020000-\U000323af"
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")

# Outside of these there are none; asking for each of 1.1 million code points takes its time.
_BLOCKS_WITH_MARKS = (
    (0x300, 0x3100),
    (0xA66F, 0xAC00),
    (0xFB1E, 0xFE30),
    (0x101FD, 0x1E94B),
    (0xE0100, 0xE01F0),
)

# Marks that people leave out when they type: Latin, Greek and Cyrillic accents, Hebrew points,
# Arabic vowels. Indic and Thai vowel signs are not among them: without these the word is another.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670]")
_HIDE_SHORT_I = str.maketrans({"й": "\ue000"})  # a letter of its own, not an accented и
_SHOW_SHORT_I = str.maketrans({"\ue000": "й"})
_UNDECOMPOSED = str.maketrans(
    {
        "đ": "d",
        "ð": "d",
        "ø": "o",
        "ł": "l",
        "ħ": "h",
        "ŧ": "t",
        "\u0131": "i",
        "æ": "ae",
        "œ": "oe",
    }
)


@dataclass(frozen=True, slots=True)
class Forms:
    """One lexeme, as it is indexed and asked for."""

    parts: tuple[str, ...]
    """Its words (pairs of characters, in an unspaced script) with accents folded."""
    written: tuple[str, ...]
    """The same before folding, one for each part."""
    wholes: tuple[str, ...]
    """An identifier as one term, then its segments that are identifiers themselves."""
    further: tuple[str, ...]
    """All that is not among the parts."""


@dataclass(frozen=True, slots=True)
class _Patterns:
    lexeme: re.Pattern[str]
    part: re.Pattern[str]
    unspaced: re.Pattern[str]
    cluster: re.Pattern[str]
    aligned: re.Pattern[str]


def _patterns(text: str) -> _Patterns:
    return _patterns_within(0x10FFFF if _BEYOND_BMP.search(text) else 0xFFFF)


@cache
def _patterns_within(last_code: int) -> _Patterns:
    """Patterns for text beyond ASCII, built at the first need, for it takes some 30 ms.

    Python tests a class without characters beyond the BMP nearly twice as fast, so there are two.
    """
    marks = _mark_ranges(last_code)
    runs = _UNSPACED if last_code <= 0xFFFF else _UNSPACED + _UNSPACED_BEYOND_BMP
    letter = rf"[^\W_{runs}]"
    # A word keeps its combining marks: `\w` alone cuts Devanagari at every vowel sign.
    word = rf"{letter}++(?:[{marks}]+{letter}*)*+"
    unspaced = rf"[{runs}][{runs}{marks}]*"
    identifier = rf"{word}{_identifier_tail(word)}"
    return _Patterns(
        lexeme=re.compile(rf"{unspaced}|{identifier}|\.(?<![\w.]\.)(?=[^\W\d_]){identifier}"),
        part=re.compile(word),
        unspaced=re.compile(unspaced),
        cluster=re.compile(rf"[^{marks}][{marks}]{{0,8}}|[{marks}]{{1,8}}"),
        aligned=re.compile(rf"[\x00-\x7f]+(?![{marks}])|(?s:.)[{marks}]*"),
    )


def _mark_ranges(last_code: int) -> str:
    """All combining marks, as the inside of a character class."""
    marks = [
        code
        for first, end in _BLOCKS_WITH_MARKS
        for code in range(first, min(end, last_code))
        if unicodedata.category(chr(code))[0] == "M"
    ]
    breaks = [i for i, (here, following) in enumerate(pairwise(marks)) if following != here + 1]
    firsts = [marks[0], *(marks[i + 1] for i in breaks)]
    lasts = [*(marks[i] for i in breaks), marks[-1]]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


def fold_case(text: str) -> str:
    """Compatibility forms unified, case folded, invisible joiners gone."""
    if text.isascii():
        return text.lower()
    chars_max = _folded_chars_max(text)
    folded = _INVISIBLE.sub("", normal_form("NFKC", text)).casefold()[:chars_max]
    return normal_form("NFKC", folded)[:chars_max]


def _folded_chars_max(text: str) -> int:
    return FOLDED_GROWTH_MAX * len(text) + TERM_CHARS_MAX


def fold_accents(word: str) -> str:
    """The word without the marks that people leave out."""
    if word.isascii():
        return word
    return (_without_accents_cached if len(word) <= TERM_CHARS_MAX else _without_accents)(word)


def _without_accents(word: str) -> str:
    bare = _ACCENT.sub("", normal_form("NFD", word.translate(_HIDE_SHORT_I)))
    bare = normal_form("NFC", bare).translate(_UNDECOMPOSED)
    return bare.translate(_SHOW_SHORT_I) or word


_without_accents_cached = lru_cache(maxsize=16_384)(_without_accents)


def aligned_fold(text: str) -> tuple[str, list[int]]:
    """`fold_case(text)`, and for each of its characters the place it has in `text`."""
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    chars_max = _folded_chars_max(text)
    folded: list[str] = []
    places: list[int] = []
    for match in _patterns(text).aligned.finditer(text):
        written = match[0]
        start = match.start()
        if written.isascii():
            folded.append(written.lower())
            places += range(start, start + len(written))
        else:
            piece = (_fold_case_cached if len(written) <= 8 else fold_case)(written)
            folded.append(piece)
            places += [start] * len(piece)
        if len(places) > chars_max:
            break
    places.append(len(text))
    return "".join(folded), places


_fold_case_cached = lru_cache(maxsize=4_096)(fold_case)


def lexemes(folded: str) -> list[str]:
    """Words, whole identifiers and runs of unspaced script, in order."""
    pattern = _ASCII_LEXEME if folded.isascii() else _patterns(folded).lexeme
    return pattern.findall(folded)


def lexeme_spans(folded: str) -> Iterator[tuple[int, str]]:
    """The same, with where each begins."""
    pattern = _ASCII_LEXEME if folded.isascii() else _patterns(folded).lexeme
    return ((match.start(), match[0]) for match in pattern.finditer(folded))


def part_spans(lexeme: str) -> Iterator[tuple[int, str]]:
    """The words of a lexeme, with where each begins in it."""
    pattern = _ASCII_PART if lexeme.isascii() else _patterns(lexeme).part
    return ((match.start(), match[0]) for match in pattern.finditer(lexeme))


def is_unspaced(lexeme: str) -> bool:
    return not lexeme.isascii() and _patterns(lexeme).unspaced.match(lexeme) is not None


def clusters(run: str) -> list[str]:
    """The characters of a run of unspaced script, each with its marks."""
    return _patterns(run).cluster.findall(run)


def pairs(run: list[str]) -> list[str]:
    return [left + right for left, right in pairwise(run)]


def forms(lexeme: str) -> Forms:
    # A long lexeme is a blob or a run of unspaced script: not worth a place in the cache.
    return (_forms_cached if len(lexeme) <= TERM_CHARS_MAX else _forms)(lexeme)


def _forms(lexeme: str) -> Forms:
    if is_unspaced(lexeme):
        # The last character stands alone too: then every character begins some term, a search for
        # one character is a search by prefix, and single characters need no second run.
        run = clusters(lexeme)
        parts = (*pairs(run), run[-1])
        return Forms(parts, parts, (), ())
    written = tuple(word[:TERM_CHARS_MAX] for _, word in part_spans(lexeme))
    parts = tuple(map(fold_accents, written))
    wholes = tuple(_wholes(fold_accents(lexeme)))
    exact = (word for word, bare in zip(written, parts, strict=True) if word != bare)
    return Forms(parts, written, wholes, (*wholes, *exact))


_forms_cached = lru_cache(maxsize=16_384)(_forms)


def _wholes(lexeme: str) -> Iterator[str]:
    """`src/main.py` gives itself and `main.py`; a plain word gives nothing."""
    if _SIGNS.isdisjoint(lexeme):
        return
    yield lexeme[:TERM_CHARS_MAX]
    pieces = [lexeme]
    for level in _JOINT_LEVELS:
        parted: list[str] = []
        for piece in pieces:
            segments = level.split(piece)
            parted += segments
            if len(segments) > 1:
                yield from (s[:TERM_CHARS_MAX] for s in segments if not _SIGNS.isdisjoint(s))
        pieces = parted


def has_camel(text: str) -> bool:
    return _CAMEL_HINT.search(text) is not None


def camel_parts(text: str) -> Iterator[list[str]]:
    """For each word like `HTTPServer`, case kept: http, server. Single letters are left out."""
    if not has_camel(text):
        return
    for word in _CAMEL_WORD.findall(text):
        if has_camel(word):
            parts = [part[:TERM_CHARS_MAX].lower() for part in _CAMEL_PART.findall(word)]
            yield [part for part in parts if len(part) > 1]

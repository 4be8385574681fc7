"""In which language a text is, its function words, and the stems of its other words.

A script tells some languages. Those of the Latin script are told by their function words (`und`,
`para`, `için`) and letters (`ğ`, `ł`). A text of which too little is known has no language: it is
indexed and asked for by its words alone. So is English, whose stems are what the index is made of.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import Stemmer

from zibaldone.limits import LANGUAGE_WORDS_MAX, TERM_CHARS_MAX
from zibaldone.text.words import STOP_WORDS, fold_accents, forms, is_unspaced

ENGLISH = "en"
UNKNOWN = ""

STEM_MARK = "~"
"""A term that begins so is a stem of its language, and no word: no phrase or prefix finds it."""

_STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}

# First and last character, the language that is taken where nothing tells them apart, and the
# others that are written so.
_SCRIPTS = (
    ("\u0370", "\u03ff", "el", ()),
    ("\u1f00", "\u1fff", "el", ()),
    ("\u0400", "\u052f", "ru", ("bg", "uk")),
    ("\u0531", "\u058f", "hy", ()),
    ("\u0590", "\u05ff", "he", ()),
    ("\u0600", "\u077f", "ar", ("fa", "ur")),
    ("\u0900", "\u097f", "hi", ("mr",)),
    ("\u0b80", "\u0bff", "ta", ()),
)
_SCRIPT_SHARE_MIN = 0.3
"""Names and code in a Russian text are in Latin letters."""

_LETTERS = {
    letter: tuple(languages.split())
    for letters, languages in {
        "\u00e4": "de fi sv et",
        "\u00f6": "de fi sv et hu tr",
        "\u00fc": "de et hu tr",
        "\u00e5": "da no sv",
        "\u00f8\u00e6": "da no",
        "\u00f1": "es",
        "\u011f\u0131": "tr",
        "\u015f": "tr ro",
        "\u0219\u021b\u0163": "ro",
        "\u0103": "ro vi",
        "\u00ee": "ro fr",
        "\u00e2": "ro fr pt vi",
        "\u0151\u0171": "hu",
        "\u0142\u015b\u017a\u017c\u0144\u0107": "pl",
        "\u0105\u0119": "pl lt",
        "\u0159\u011b\u016f": "cs",
        "\u010d\u0161\u017e": "cs lt",
        "\u0117\u012f\u0173\u016b": "lt",
        "\u00e3": "pt vi",
        "\u00f5": "pt et vi",
        "\u00e7": "fr pt tr ca",
        "\u00e8\u00ea": "fr vi",
        "\u0111\u01a1\u01b0": "vi",
        "\u0456\u0457\u0454\u0491": "uk",
        "\u067e\u0686\u0698\u06af": "fa ur",
        "\u0679\u0688\u0691\u06ba\u06d2": "ur",
    }.items()
    for letter in letters
} | {chr(code): ("vi",) for code in range(0x1EA0, 0x1EFA)}

_POINTS_MIN = 3.0
_POINTS_SHARE_MIN = 0.15
_AHEAD_OF_ENGLISH = 1.2
"""Lists of function words hold words of English and of code (`on`, `dir`, `mode`)."""

_EMPTY_CHARS_MAX = 3
"""Function words that are no longer than this say nothing. Lists have content words
among the longer ones (`jahr`, `menschen`)."""

_STEM_BYTES_MAX = 64

_by_thread = threading.local()


def language_of(words: Sequence[str]) -> str:
    """The language of these words (lexemes, case folded, accents kept); UNKNOWN if unsure."""
    told = set(words[:LANGUAGE_WORDS_MAX])
    english = len(told & STOP_WORDS)
    known = told & _all_function_words()
    marked = [word for word in told if not word.isascii()]
    if english and not marked and english >= len(known):
        return ENGLISH
    if not known and not marked:
        return UNKNOWN
    if sum(map(_is_unspaced, marked)) >= _SCRIPT_SHARE_MIN * len(told):
        return UNKNOWN
    for first, last, usual, others in _SCRIPTS if marked else ():
        written = [word for word in marked if first <= word[0] <= last]
        if written and len(written) >= _SCRIPT_SHARE_MIN * len(told):
            if not others:
                return usual
            points = _points(written, written, (usual, *others))
            return max(points, key=lambda language: (points[language], language == usual))
    points = _points(told & (known | STOP_WORDS), marked, _latin())
    (most, best), (second, _) = sorted(((points[name], name) for name in points), reverse=True)[:2]
    least = max(_POINTS_MIN, _POINTS_SHARE_MIN * len(told), _AHEAD_OF_ENGLISH * points[ENGLISH])
    return best if best == ENGLISH or (most >= least and most > second) else UNKNOWN


def other_language_of(words: Sequence[str]) -> str:
    """The same for what is not English; UNKNOWN for English, too."""
    language = language_of(words)
    return UNKNOWN if language == ENGLISH else language


def _is_unspaced(word: str) -> bool:
    return word[0] >= "\u0e00" and is_unspaced(word)


def _points(
    known: Iterable[str], marked: Iterable[str], languages: Collection[str]
) -> dict[str, float]:
    """How much speaks for each language. A word that few languages have says more."""
    points = dict.fromkeys(languages, 0.0)
    of_word = _languages_of()
    for word in known:
        having = [language for language in of_word.get(word, ()) if language in points]
        for language in having:
            points[language] += 1 + 1 / len(having)
    for letter, count in Counter(filter(_LETTERS.__contains__, "".join(marked))).items():
        for language in _LETTERS[letter]:
            if language in points:
                points[language] += count
    return points


def function_words(language: str) -> frozenset[str]:
    if language == ENGLISH:
        return STOP_WORDS
    return _function_words().get(language, frozenset())


def has_stems(language: str) -> bool:
    return language in _STEMMERS


def language_stem(word: str, language: str) -> str:
    """The stem of a case-folded word as the index has it; "" if the language has no stems."""
    algorithm = _STEMMERS.get(language)
    if algorithm is None:
        return ""
    return STEM_MARK + _stemmed(word[:TERM_CHARS_MAX], algorithm)


def content_stem(word: str, language: str) -> str:
    """The same; "" for a short function word, too."""
    return "" if is_empty(word, language) else language_stem(word, language)


def is_empty(word: str, language: str) -> bool:
    """Whether it is a function word without doubt, in a language that has stems."""
    is_short = len(word) <= _EMPTY_CHARS_MAX
    return is_short and language in _STEMMERS and word in function_words(language)


def language_stems(words: Iterable[str], language: str) -> list[str]:
    """The stems of a text, as its index has them: short function words have none."""
    if language not in _STEMMERS:
        return []
    stems_of = _stems_in(language)
    return [stem for word in words for stem in stems_of[word]]


class _Stems(dict[str, tuple[str, ...]]):
    """The stems of every lexeme met recently in one language."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, lexeme: str) -> tuple[str, ...]:
        if is_unspaced(lexeme):
            stems: tuple[str, ...] = ()
        else:
            made = (content_stem(word, self._language) for word in forms(lexeme).written)
            stems = tuple(filter(None, made))
        if len(lexeme) <= TERM_CHARS_MAX:
            if len(self) >= _STEMS_MAX:
                self.clear()
            self[lexeme] = stems
        return stems


_STEMS_MAX = 16_384


@cache
def _stems_in(language: str) -> _Stems:
    return _Stems(language)


@lru_cache(maxsize=16_384)
def _stemmed(word: str, algorithm: str) -> str:
    if len(word.encode()) > _STEM_BYTES_MAX:
        return fold_accents(word)
    return fold_accents(_stemmer(algorithm).stemWord(word)) or word


def _stemmer(algorithm: str) -> Any:
    """One for each thread: it works in a buffer of its own."""
    stemmers = _by_thread.__dict__.setdefault("stemmers", {})
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm, 0)
    return stemmers[algorithm]


@cache
def _function_words() -> dict[str, frozenset[str]]:
    """By language; the file says where they are from."""
    text = resources.files("zibaldone.text").joinpath("function_words.txt").read_text("utf-8")
    words: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            current = words.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            current += line.split()
    return {language: frozenset(listed) for language, listed in words.items()}


@cache
def _languages_of() -> dict[str, tuple[str, ...]]:
    """The languages that have a function word. Single letters tell nothing: code has them, too."""
    found: dict[str, list[str]] = {}
    for language, words in (*_function_words().items(), (ENGLISH, STOP_WORDS)):
        for word in words:
            if len(word) > 1 or not word.isascii():
                found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


@cache
def _all_function_words() -> frozenset[str]:
    """Of languages other than English."""
    return frozenset(word for word, having in _languages_of().items() if having != (ENGLISH,))


@cache
def _latin() -> frozenset[str]:
    written_otherwise = {name for *_, usual, others in _SCRIPTS for name in (usual, *others)}
    return frozenset((*_function_words(), ENGLISH)) - written_otherwise

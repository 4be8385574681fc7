"""Read a query as people type it. The small language is described at `model.query.Query`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from zibaldone.limits import (
    QUERY_BYTES_MAX,
    QUERY_TERMS_COUNTED_MAX,
    QUERY_TERMS_MAX,
    QUERY_WISH_WORDS_MAX,
)
from zibaldone.model.query import Query
from zibaldone.text.language import other_language_of
from zibaldone.text.lookups import lookup_count
from zibaldone.text.words import STOP_WORDS, clusters, fold_case, is_unspaced, lexemes, pairs

_QUOTED = re.compile(r'(?<![^\s(])(-|\+|title:)?"([^"]*)"(?!\w)')
_EXCLUDING = re.compile(r"-\.?\w")
_SENTENCE_END = re.compile(
    r"[.?!\u2026\u3002\uff01\uff1f\u061f\u0964][\"'\u2019\u201d\u00bb)\]\s]*\Z"
)

_SENTENCE_WORDS_MIN = 4
"""With so many plain words, one of which only joins the others (`the`, `how`), it is a sentence."""
_LONG_WORDS_MIN = 12
"""With so many it is one in any language."""
_SPARE_MAX = QUERY_TERMS_COUNTED_MAX - QUERY_TERMS_MAX

_ENDED_WORDS_MIN = 2
"""With so many it is one if it ends as sentences do."""


def parse_query(query: str) -> Query:
    """Read a query. Never raises, whatever the text."""
    literal = fold_case(query[:QUERY_BYTES_MAX])
    parts = list(_parts(literal))
    plain = [part for part in parts if part.quotes is None and not _is_operator(part.text)]
    words = [word for part in plain for word in lexemes(part.text)]
    language = other_language_of(words or lexemes(literal))
    is_prose = _is_prose(literal, words)
    draft = _Draft(is_prose=is_prose, is_all_quoted=not words, language=language)
    for part in parts:
        draft.read(part)
    return draft.finish()


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    quotes: str | None = None
    """What stands before the quotes of a quotation; None: it is none."""


def _parts(literal: str) -> Iterator[_Part]:
    """Quotations, and what is between blanks around them, in order."""
    position = 0
    for quoted in _QUOTED.finditer(literal):
        yield from map(_Part, literal[position : quoted.start()].split())
        yield _Part(quoted[2], quoted[1] or "")
        position = quoted.end()
    yield from map(_Part, literal[position:].split())


def _is_operator(written: str) -> bool:
    return bool(_EXCLUDING.match(written) or _title_words(written) or _begun_word(written))


def _title_words(written: str) -> list[str]:
    return lexemes(written[6:]) if written.startswith("title:") else []


def _begun_word(written: str) -> str:
    """The beginning of a word in `beginning*`."""
    starred = written.rstrip(".,;:!?)]")
    if not starred.endswith("*"):
        return ""
    words = lexemes(written)
    is_begun = bool(words) and len(words[-1]) > 1 and starred.endswith(words[-1] + "*")
    return words[-1] if is_begun and not is_unspaced(words[-1]) else ""


def _is_prose(literal: str, words: list[str]) -> bool:
    """Does it read like a sentence, not like the words of a search?"""
    if len(words) >= _LONG_WORDS_MIN:
        return True
    if len(words) >= _SENTENCE_WORDS_MIN and not STOP_WORDS.isdisjoint(words):
        return True
    return len(words) >= _ENDED_WORDS_MIN and _SENTENCE_END.search(literal) is not None


def _first_wishes(wishes: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """As many words of them, from the first, as are looked for side by side."""
    left = QUERY_WISH_WORDS_MAX
    for wish in wishes:
        if wish[:left]:
            yield wish[:left]
        left -= len(wish[:left])


class _Draft:
    """A query while it is read."""

    def __init__(self, *, is_prose: bool, is_all_quoted: bool, language: str) -> None:
        self._language = language
        self._is_prose = is_prose
        self._is_all_quoted = is_all_quoted
        self.terms: list[str] = []
        self.phrases: list[tuple[str, ...]] = []
        self.wishes: list[tuple[str, ...]] = []
        self.excluded: list[tuple[str, ...]] = []
        self.title_terms: list[str] = []
        self.prefixes: list[str] = []
        self.plain_operators: list[str] = []
        self._room = QUERY_TERMS_MAX
        self._ignored = 0

    def read(self, part: _Part) -> None:
        if part.quotes is not None:
            self._read_quotation(part.quotes, tuple(lexemes(part.text)))
        elif not _is_operator(part.text):
            self._read_plain(part.text)
        elif self._is_prose:
            self.plain_operators.append(part.text)
            self._read_plain(part.text)
        else:
            self._read_operator(part.text)

    def _read_quotation(self, quotes: str, words: tuple[str, ...]) -> None:
        if quotes == "title:":
            self.title_terms += words
        elif not words:
            return
        elif quotes == "-":
            self.excluded.append(words)
        elif quotes == "+" or self._is_all_quoted:
            self.phrases.append(words)
        else:
            self.wishes.append(words)
            for word in words:
                self._read_lexeme(word)

    def _read_operator(self, written: str) -> None:
        if _EXCLUDING.match(written):
            self.excluded.append(tuple(lexemes(written)))
        elif title_words := _title_words(written):
            self.title_terms += title_words
        else:
            *others, begun = lexemes(written)
            for lexeme in others:
                self._read_lexeme(lexeme)
            self.prefixes.append(begun)

    def _read_plain(self, written: str) -> None:
        for lexeme in lexemes(written):
            self._read_lexeme(lexeme)

    def _read_lexeme(self, lexeme: str) -> None:
        self.terms += (pairs(clusters(lexeme)) or [lexeme]) if is_unspaced(lexeme) else [lexeme]

    def finish(self) -> Query:
        content = [term for term in self.terms if term not in STOP_WORDS]
        if content or self.phrases or self.wishes or self.title_terms or self.prefixes:
            self.terms = content
        # Required parts come first: without one of them the search would be wider than asked. But
        # what is excluded leaves half of the room to what is wanted, or nothing would be.
        phrases = tuple(filter(None, map(self._fitting, dict.fromkeys(self.phrases))))
        title_terms = tuple(filter(self._fits, dict.fromkeys(self.title_terms)))
        kept_back = self._room // 2 if self.terms or self.prefixes else 0
        self._room -= kept_back
        excluded = tuple(filter(None, map(self._fitting, dict.fromkeys(self.excluded))))
        self._room += kept_back
        prefixes = tuple(filter(self._fits, dict.fromkeys(self.prefixes)))
        distinct = dict.fromkeys(self.terms)
        terms = tuple(filter(self._fits, distinct))
        taken = frozenset(terms)
        spare = islice((term for term in distinct if term not in taken), _SPARE_MAX)
        return Query(
            phrases=phrases,
            title_terms=title_terms,
            excluded=excluded,
            prefixes=prefixes,
            terms=terms,
            wishes=tuple(_first_wishes(dict.fromkeys(self.wishes))),
            plain_operators=tuple(dict.fromkeys(self.plain_operators)),
            language=self._language,
            spare_terms=tuple(spare),
            ignored=self._ignored,
        )

    def _fits(self, term: str) -> bool:
        cost = lookup_count(term)
        if cost > self._room:
            self._ignored += 1
            return False
        self._room -= cost
        return True

    def _fitting(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """As much of a phrase, from its start, as there is room for."""
        kept: list[str] = []
        for word in words:
            cut = "".join(clusters(word)[: max(1, self._room)]) if is_unspaced(word) else word
            if not self._fits(cut):
                self._ignored += len(words) - len(kept) - 1
                break
            kept.append(cut)
        return tuple(kept)

"""Read a query as people type it. The small language is described at `model.query.Query`."""

from __future__ import annotations

import re

from zibaldone.limits import QUERY_BYTES_MAX, QUERY_TERMS_MAX
from zibaldone.model.query import Query
from zibaldone.text.lookups import lookup_count
from zibaldone.text.words import STOP_WORDS, clusters, fold_case, is_unspaced, lexemes, pairs

_QUOTED = re.compile(r'(?<![^\s(])(-|title:)?"([^"]*)"(?!\w)')
_EXCLUDING = re.compile(r"-\.?\w")


def parse_query(query: str) -> Query:
    """Read a query. Never raises, whatever the text."""
    literal = fold_case(query[:QUERY_BYTES_MAX])
    draft = _Draft()
    position = 0
    for quoted in _QUOTED.finditer(literal):
        draft.read(literal[position : quoted.start()])
        words = tuple(lexemes(quoted[2]))
        if quoted[1] == "title:":
            draft.title_terms += words
        elif words:
            (draft.excluded if quoted[1] else draft.phrases).append(words)
        position = quoted.end()
    draft.read(literal[position:])
    return draft.finish()


class _Draft:
    """A query while it is read."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.phrases: list[tuple[str, ...]] = []
        self.excluded: list[tuple[str, ...]] = []
        self.title_terms: list[str] = []
        self.prefixes: list[str] = []
        self._room = QUERY_TERMS_MAX
        self._ignored = 0

    def read(self, literal: str) -> None:
        for written in literal.split():
            if _EXCLUDING.match(written):
                self.excluded.append(tuple(lexemes(written)))
            elif written.startswith("title:") and (words := lexemes(written[6:])):
                self.title_terms += words
            else:
                self._read_plain(written)

    def _read_plain(self, written: str) -> None:
        starred = written.rstrip(".,;:!?)]")
        for lexeme in lexemes(written):
            if is_unspaced(lexeme):
                self.terms += pairs(clusters(lexeme)) or [lexeme]
            elif len(lexeme) > 1 and starred.endswith(lexeme + "*"):
                self.prefixes.append(lexeme)
            else:
                self.terms.append(lexeme)

    def finish(self) -> Query:
        content = [term for term in self.terms if term not in STOP_WORDS]
        if content or self.phrases or self.title_terms or self.prefixes:
            self.terms = content
        # Required parts come first: without one of them the search would be wider than asked. But
        # what is excluded leaves half of the room to what is wanted, or nothing would be.
        phrases = tuple(filter(None, map(self._fitting, dict.fromkeys(self.phrases))))
        title_terms = tuple(filter(self._fits, dict.fromkeys(self.title_terms)))
        kept_back = self._room // 2 if self.terms or self.prefixes else 0
        self._room -= kept_back
        excluded = tuple(filter(None, map(self._fitting, dict.fromkeys(self.excluded))))
        self._room += kept_back
        return Query(
            phrases=phrases,
            title_terms=title_terms,
            excluded=excluded,
            prefixes=tuple(filter(self._fits, dict.fromkeys(self.prefixes))),
            terms=tuple(filter(self._fits, dict.fromkeys(self.terms))),
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

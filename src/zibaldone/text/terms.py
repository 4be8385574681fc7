"""What the keyword index stores for a text.

A text becomes runs of terms, all of them stemmed as English is:

    first run    the words in reading order, case and accents folded, identifiers in their parts,
                 unspaced scripts as overlapping pairs; phrases are looked for here
    second run   further forms: identifiers whole (`json_extract`, `c++`) and words as written
                 where folding changed them (`việt`)
    third run    in another language than English the stems of its words, each with a mark before it
    other runs   the parts of camelCase words, a run for each word

So each word of a German text is found as it is written and by its German stem (`text.language`). No
phrase spans two runs, and the second and third make no false phrase: their terms hold a sign or a
mark that no phrase term has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from zibaldone.limits import INDEX_TERMS_MAX, TERM_CHARS_MAX
from zibaldone.model.chunk import ChunkTerms, JoinedRuns
from zibaldone.text.language import STEM_MARK, language_of, language_stems
from zibaldone.text.stem import stem
from zibaldone.text.title import title_beside
from zibaldone.text.words import camel_parts, fold_case, forms, lexemes

_INDEXED_CHARS_MAX = INDEX_TERMS_MAX * TERM_CHARS_MAX

_PLAIN_MAX = 32_768
"""Words kept; some five megabytes."""


class _PlainStems(dict[str, str | None]):
    """The term of every plain word met recently; None for what is no plain word.

    Most lexemes are plain words (ASCII letters and digits): a lookup is all that they cost.
    """

    def __missing__(self, lexeme: str) -> str | None:
        is_plain = lexeme.isalnum() and lexeme.isascii()
        term = stem(lexeme[:TERM_CHARS_MAX]) if is_plain else None
        if len(lexeme) <= TERM_CHARS_MAX:
            if len(self) >= _PLAIN_MAX:
                self.clear()
            self[lexeme] = term
        return term


_plain_stems = _PlainStems()


def chunk_terms(title: str, heading: str, text: str) -> ChunkTerms:
    """What the keyword index stores for a chunk. Its text tells the language of all three."""
    split = _split(text)
    language = language_of(split)
    beside = title_beside(title, text)
    return ChunkTerms(
        title_terms(beside, language) if beside else JoinedRuns([]),
        JoinedRuns(index_terms(heading, language) if heading else [[]]),
        JoinedRuns(_runs(text, split, language)),
    )


def has_own_stems(terms: ChunkTerms) -> bool:
    """Whether there are stems of another language than English among the terms."""
    return any(run[:1] and run[0][0] == STEM_MARK for run in terms.body)


@lru_cache(maxsize=64)
def title_terms(title: str, language: str) -> JoinedRuns:
    """Cached: all chunks of a document have its title."""
    return JoinedRuns(index_terms(title, language))


def index_terms(text: str, language: str = "") -> list[list[str]]:
    """The terms to index for a text, run by run."""
    return _runs(text, _split(text), language)


def _split(text: str) -> list[str]:
    return lexemes(fold_case(text[:_INDEXED_CHARS_MAX]))


def _runs(text: str, split: list[str], language: str) -> list[list[str]]:
    words, further = _words(split)
    stems = language_stems(split, language)
    camels = [[*map(stem, parts)] for parts in camel_parts(text[:_INDEXED_CHARS_MAX])]
    if stems:
        runs = [words, further, stems, *camels]
    else:
        runs = [words, further, *camels] if further or camels else [words]
    return list(_within(INDEX_TERMS_MAX, runs))


def _words(split: list[str]) -> tuple[list[str], list[str]]:
    """The first two runs."""
    plain = list(map(_plain_stems.__getitem__, split))
    if None not in plain:
        return cast("list[str]", plain), []
    words: list[str] = []
    further: list[str] = []
    for lexeme, term in zip(split, plain, strict=True):
        if term is not None:
            words.append(term)
        else:
            made = forms(lexeme)
            words += map(stem, made.parts)
            further += map(stem, made.further)
    return words, further


def _within(terms_max: int, runs: Iterable[list[str]]) -> Iterable[list[str]]:
    """So many terms, where a step from one run to the next counts as one."""
    for run in runs:
        if terms_max <= 0:
            return
        yield run[:terms_max]
        terms_max -= len(run) + 1

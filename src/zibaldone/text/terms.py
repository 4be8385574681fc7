"""What the keyword index stores for a text.

A text becomes runs of terms, all of them stemmed:

    first run    the words in reading order, case and accents folded, identifiers in their parts,
                 unspaced scripts as overlapping pairs; phrases are looked for here
    second run   further forms: identifiers whole (`json_extract`, `c++`) and words as written
                 where folding changed them (`việt`)
    other runs   the parts of camelCase words, a run for each word

No phrase spans two runs, and the second makes no false phrase: its terms hold a sign or a mark
that no phrase term has.
"""

from __future__ import annotations

from collections.abc import Iterable

from zibaldone.limits import INDEX_TERMS_MAX, TERM_CHARS_MAX
from zibaldone.text.stem import stem
from zibaldone.text.words import camel_parts, fold_case, forms, lexemes


def index_terms(text: str) -> list[list[str]]:
    """The terms to index for a text, run by run."""
    text = text[: INDEX_TERMS_MAX * TERM_CHARS_MAX]
    words: list[str] = []
    further: list[str] = []
    for lexeme in lexemes(fold_case(text)):
        if lexeme.isalnum() and lexeme.isascii():
            words.append(lexeme[:TERM_CHARS_MAX])
        else:
            found = forms(lexeme)
            words += found.parts
            further += found.further
    camels = list(camel_parts(text))
    runs = [words, further, *camels] if further or camels else [words]
    return list(_within(INDEX_TERMS_MAX, ([*map(stem, run)] for run in runs)))


def _within(terms_max: int, runs: Iterable[list[str]]) -> Iterable[list[str]]:
    """So many terms, where a step from one run to the next counts as one."""
    for run in runs:
        if terms_max <= 0:
            return
        yield run[:terms_max]
        terms_max -= len(run) + 1

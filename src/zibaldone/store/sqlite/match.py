"""The keyword index in FTS5's terms: how text is stored in it, and a query as a MATCH expression.

The table has the columns title, heading and body, fed with our terms joined by spaces. Its
tokenizer only has to split at spaces: the terms are folded and stemmed already.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from zibaldone.model.chunk import JoinedRuns, TermRuns
from zibaldone.model.query import Query
from zibaldone.text.lookups import (
    Alternatives,
    Lookup,
    phrase_lookup,
    title_lookups,
    wanted_lookups,
)

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cf'"
"""The `tokenize=` of the table. Every printable character is part of a token: a term stays one."""

GAP = "|"
"""Stands between two runs of terms, so that no phrase spans them; no query can ask for it."""

Group = tuple[str, ...]
"""Expressions of which any will do."""


def column_text(runs: TermRuns) -> str:
    """What a column of the table is given."""
    texts = runs.texts if isinstance(runs, JoinedRuns) else map(" ".join, runs)
    return f" {GAP} ".join(texts)


def to_fts5(query: Query, *, require_all: bool = False) -> str:
    """The MATCH expression for a query, or "" when it asks for nothing (then do not run it).

    `require_all` wants every term instead of any: fewer rows to rank, for a first try.
    """
    if query.is_empty:
        return ""
    required = [phrase(words) for words in query.phrases]
    if query.title_terms:
        title = map(_any_of, map(_group, title_lookups(query)))
        required.append(f"(title : ({' AND '.join(title)}))")
    wanted = wanted_groups(query)
    if require_all:
        expression = " AND ".join([*required, *map(_any_of, wanted)])
    else:
        must, may = " AND ".join(required), " OR ".join(chain.from_iterable(wanted))
        expression = f"({must}) AND ({must} OR {may})" if must and may else must or may
    return without_excluded(query, expression)


def without_excluded(query: Query, expression: str) -> str:
    """What an expression finds, less what the query leaves out."""
    if not query.excluded:
        return expression
    return f"({expression}) NOT ({' OR '.join(map(phrase, query.excluded))})"


def wanted_groups(query: Query) -> list[Group]:
    """What brings chunks, as expressions. A quotation counts like a word, one of a single word not
    twice."""
    words = list(map(_group, wanted_lookups(query)))
    wishes = ((phrase(wish),) for wish in query.wishes)
    return [*words, *(group for group in wishes if group not in words)]


def _group(alternatives: Alternatives) -> Group:
    return tuple(map(_expression, alternatives))


def _expression(lookup: Lookup) -> str:
    return quoted(lookup.term) + (" *" if lookup.is_prefix else "")


def phrase(words: tuple[str, ...]) -> str:
    """Words side by side."""
    lookup = phrase_lookup(words)
    expression = _expression(Lookup(" ".join(lookup.terms), lookup.is_open))
    if not lookup.marked:
        return expression
    return f"({' AND '.join([expression, *map(quoted, lookup.marked)])})"


def _any_of(group: Iterable[str]) -> str:
    first, *others = group
    return f"({' OR '.join([first, *others])})" if others else first


def quoted(term: str) -> str:
    """The expression for one term."""
    return '"' + term.replace('"', '""') + '"'

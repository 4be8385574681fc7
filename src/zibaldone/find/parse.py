"""A caller's words → a query, within bounds."""

from __future__ import annotations

from itertools import chain
from typing import Literal

from zibaldone.errors import InvalidArgument, LimitExceeded
from zibaldone.limits import QUERY_BYTES_MAX
from zibaldone.model.query import Query
from zibaldone.text.query import parse_query

QuotingRank = Literal["nowhere", "higher", "first"]

_QUOTING_NOTES: dict[QuotingRank, str] = {
    "nowhere": "nothing holds the quotation; its words were looked for",
    "higher": 'what holds the quotation is ranked higher; write +"…" to find nothing else',
    "first": 'what holds the quotation comes first; write +"…" to find nothing else',
}
_OPERATORS_QUOTED = 'operators work there with quotes: -"word", title:"word"'
_OPERATORS_SHOWN = 3
_OPERATOR_CHARS_MAX = 60


def checked_text(text: str, field: str = "query") -> str:
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as problem:
        raise InvalidArgument(
            f"Unpaired surrogate in {field} at {problem.start}: not valid text.", field=field
        ) from None
    if size_bytes > QUERY_BYTES_MAX:
        raise LimitExceeded(
            f"The {field} has {size_bytes} bytes; {QUERY_BYTES_MAX} are allowed.",
            field=field,
            bytes_max=QUERY_BYTES_MAX,
        )
    if not text.strip():
        raise InvalidArgument(f"The {field} is empty.", field=field)
    return text


def checked_query(text: str, field: str = "query") -> Query:
    return parse_query(checked_text(text, field))


def query_notes(query: Query, quoting: QuotingRank | None) -> list[str]:
    """What is said of how the query was read, and of the rank of what holds a quotation of it."""
    notes = [f"{query.ignored} words of the query were left out"] if query.ignored else []
    if query.wishes and quoting is not None:
        notes.append(_QUOTING_NOTES[quoting])
    if query.plain_operators:
        shown = " ".join(query.plain_operators[:_OPERATORS_SHOWN])[:_OPERATOR_CHARS_MAX]
        notes.append(f"{shown} was read as words of a sentence; {_OPERATORS_QUOTED}")
    return notes


def demands_words(query: Query) -> bool:
    """Must a chunk hold certain words? Then nearness in meaning alone is not enough.

    The beginning of a word is one wish among others, unless it is the only one: it means nothing.
    """
    return bool(query.phrases or query.title_terms or (query.prefixes and not query.terms))


def demanded(query: Query) -> Query:
    """What a chunk must hold to be admitted, without what it may hold beside."""
    has_demands = query.phrases or query.title_terms
    return Query(
        phrases=query.phrases,
        title_terms=query.title_terms,
        excluded=query.excluded,
        prefixes=() if has_demands else query.prefixes,
    )


def meant(text: str, query: Query) -> str:
    """What a query is about, for a model: operators say nothing, excluded words the contrary."""
    if not (demands_words(query) or query.prefixes or query.excluded):
        return text.replace('"', " ") if query.wishes else text
    words = (*chain.from_iterable(query.phrases), *query.title_terms, *query.prefixes)
    return " ".join((*words, *query.terms))

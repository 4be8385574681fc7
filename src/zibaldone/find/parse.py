"""A caller's words → a query, within bounds."""

from __future__ import annotations

from itertools import chain

from zibaldone.errors import InvalidArgument, LimitExceeded
from zibaldone.limits import QUERY_BYTES_MAX
from zibaldone.model.query import Query
from zibaldone.text.query import parse_query


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


def left_out(query: Query) -> list[str]:
    """What is said of words for which there was no room."""
    return [f"{query.ignored} words of the query were left out"] if query.ignored else []


def demands_words(query: Query) -> bool:
    """Must a passage hold certain words? Then nearness in meaning alone is not enough.

    The beginning of a word is one wish among others, unless it is the only one: it means nothing.
    """
    return bool(query.phrases or query.title_terms or (query.prefixes and not query.terms))


def meant(text: str, query: Query) -> str:
    """What a query is about, for a model: operators say nothing, excluded words the contrary."""
    if not (demands_words(query) or query.prefixes or query.excluded):
        return text
    words = (*chain.from_iterable(query.phrases), *query.title_terms, *query.prefixes)
    return " ".join((*words, *query.terms))

"""A caller's words → a query, within bounds."""

from __future__ import annotations

from commonplace.errors import InvalidArgument, LimitExceeded
from commonplace.limits import QUERY_BYTES_MAX
from commonplace.text.tokens import Query, parse_query


def checked_query(text: str, field: str = "query") -> Query:
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
    return parse_query(text)

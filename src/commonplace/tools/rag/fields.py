"""What the rag tools share: filters, what to return, how a hit is shown, the clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from commonplace.errors import InvalidArgument
from commonplace.limits import (
    FILTER_VALUES_MAX,
    RAG_RESPONSE_BYTES_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)
from commonplace.model.instant import from_iso
from commonplace.model.query import Filter
from commonplace.store.port import PassageView
from commonplace.tools.answer import fit_items
from commonplace.tools.spec import Answer, Arguments

_WHOLE_MAX = 2**53 - 1

WantedHits = Annotated[int, Field(ge=1, description=f"At most {SEARCH_LIMIT_MAX} are returned")]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


def _instant(text: str) -> str:
    try:
        from_iso(text)
    except (ValueError, OverflowError):
        raise ValueError("an ISO instant, e.g. 2025-01-01T00:00:00Z") from None
    return text


Instant = Annotated[str, AfterValidator(_instant)]
Words = Annotated[list[str], Field(max_length=FILTER_VALUES_MAX)]
Numbers = Annotated[
    list[Annotated[int, Field(ge=-_WHOLE_MAX, le=_WHOLE_MAX)]], Field(max_length=FILTER_VALUES_MAX)
]


class RagFilters(Arguments):
    source_ids: Numbers | None = None
    source_names: Words | None = None
    doc_ids: Words | None = None
    min_score: float | None = Field(
        None, allow_inf_nan=False, description="Least metadata Score, not relevance"
    )
    min_relevance: float | None = Field(None, ge=0, le=1, description="Least score of a hit")
    post_type_ids: Numbers | None = None
    tags_any: Words | None = None
    tags_all: Words | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None

    def as_filter(self) -> Filter:
        return Filter(
            source_ids=_tuple(self.source_ids),
            source_names=_tuple(self.source_names),
            document_ids=_tuple(self.doc_ids),
            min_score=self.min_score,
            post_type_ids=_tuple(self.post_type_ids),
            tags_any=_tuple(self.tags_any),
            tags_all=_tuple(self.tags_all),
            created_after_us=_instant_us(self.created_after),
            created_before_us=_instant_us(self.created_before),
        )


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _instant_us(text: str | None) -> int | None:
    return None if text is None else from_iso(text)


class SearchReturn(Arguments):
    include_title: bool = True
    include_metadata: bool = True
    include_snippets: bool = False


class Clock:
    """Measures a call for its `stats`."""

    def __init__(self) -> None:
        self._started_s = time.perf_counter()

    @property
    def ms(self) -> float:
        return round((time.perf_counter() - self._started_s) * 1000, 3)


def hits_wanted(k: int) -> int:
    """What is asked for, within the cap; a caller that asks for more is told by `truncated`."""
    return min(k, SEARCH_LIMIT_MAX)


def shown_hit(
    view: PassageView, scores: dict[str, Any], include: SearchReturn, snippet_text: str | None
) -> Answer:
    hit: Answer = {
        "chunk_id": view.chunk_id,
        "doc_id": view.document_id,
        "source_id": view.source_id,
        "source_name": view.source_name,
        **scores,
    }
    if include.include_title:
        hit["title"] = view.title
    if include.include_metadata:
        hit["metadata"] = view.metadata
    if snippet_text is not None:
        hit["snippet"] = snippet_text
    return hit


def search_answer(
    hits: Sequence[Answer], *, k: int, cut: bool, clock: Clock, **stats: Any
) -> Answer:
    """`cut`: a bound left out hits that the caller asked for."""
    kept = fit_items(hits, RAG_RESPONSE_BYTES_MAX)
    return {
        "results": kept,
        "truncated": cut or len(kept) < len(hits),
        "stats": {**stats, "k_requested": k, "k_returned": len(kept), "ms": clock.ms},
    }


def normalized_lexical(score: float) -> float:
    """BM25 brought between 0 and 1 without changing any order: higher is better."""
    return round(score / (1.0 + score), 6) if score > 0 else 0.0


def place_of(chunk_id: str) -> tuple[str, int]:
    """`<document>#<n>` → the document and the number."""
    document_id, mark, number = chunk_id.rpartition("#")
    if not mark or not number.isdigit() or not number.isascii() or len(number) > 9:
        raise InvalidArgument(
            f"{chunk_id[:200]!r} is not a chunk id (<document>#<number>).", field="chunk_ids"
        )
    return document_id, int(number)


__all__ = [
    "SEARCH_LIMIT_DEFAULT",
    "Clock",
    "RagFilters",
    "SearchReturn",
    "WantedHits",
    "Weight",
    "hits_wanted",
    "normalized_lexical",
    "place_of",
    "search_answer",
    "shown_hit",
]

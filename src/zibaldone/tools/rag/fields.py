"""What the rag tools share: filters, what to return, how a hit is rendered, the clock."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Generic, NotRequired, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import InvalidArgument
from zibaldone.find.fusion import word_relevance
from zibaldone.find.judge import WEAK_NOTE
from zibaldone.find.missing import Missing, notes_of, parts_of
from zibaldone.find.relevance import is_weak
from zibaldone.limits import (
    CHUNK_ID_CHARS_MAX,
    ECHO_CHARS_MAX,
    FILTER_VALUES_MAX,
    ID_CHARS_MAX,
    RAG_RESPONSE_BYTES_MAX,
    RAG_SECONDS_MAX,
    SEARCH_LIMIT_MAX,
)
from zibaldone.model.chunk import ChunkView
from zibaldone.model.instant import to_iso
from zibaldone.model.query import Filter
from zibaldone.model.source import nearest
from zibaldone.store.port import Reader
from zibaldone.text import normalize
from zibaldone.text.facets import folded_tags
from zibaldone.tools.answer import fit_items, size_bytes
from zibaldone.tools.fields import Instant, LeftOut, instant_us
from zibaldone.tools.spec import Arguments

H = TypeVar("H", bound=Mapping[str, Any])

_WHOLE_MAX = 2**53 - 1
_SPARE_BYTES = 32
"""The time a call took is known last, and written in more or fewer digits."""
_CHUNK_NUMBER = re.compile("0|[1-9][0-9]{0,8}", re.ASCII)

WantedHits = Annotated[
    int, Field(ge=1, le=_WHOLE_MAX, description=f"At most {SEARCH_LIMIT_MAX} are returned")
]
CandidateCount = Annotated[int, Field(ge=1, le=_WHOLE_MAX)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


DocId = Annotated[str, Field(max_length=ID_CHARS_MAX)]
ChunkId = Annotated[str, Field(max_length=CHUNK_ID_CHARS_MAX)]
Words = Annotated[
    list[Annotated[str, Field(max_length=ID_CHARS_MAX)]], Field(max_length=FILTER_VALUES_MAX)
]
Numbers = Annotated[
    list[Annotated[int, Field(ge=0, le=_WHOLE_MAX)]], Field(max_length=FILTER_VALUES_MAX)
]


class RagFilters(Arguments):
    source_ids: Numbers | None = None
    source_names: Words | None = None
    doc_ids: Words | None = None
    min_score: float | None = Field(
        None, allow_inf_nan=False, description="Least metadata Score, not relevance"
    )
    min_relevance: float | None = Field(
        None, ge=0, le=1, description="Least share of the best possible score"
    )
    post_type_ids: Numbers | None = None
    tags_any: Words | None = None
    tags_all: Words | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    updated_after: Instant | None = Field(None, description="Documents written then or later")
    updated_before: Instant | None = None

    def as_filter(self) -> Filter:
        return Filter(
            source_ids=_tuple(self.source_ids),
            source_names=_tuple(self.source_names),
            document_ids=None if self.doc_ids is None else _stored_ids(self.doc_ids),
            min_score=self.min_score,
            post_type_ids=_tuple(self.post_type_ids),
            tags_any=folded_tags(self.tags_any),
            tags_all=folded_tags(self.tags_all),
            created_after_us=instant_us(self.created_after),
            created_before_us=instant_us(self.created_before),
            updated_after_us=instant_us(self.updated_after),
            updated_before_us=instant_us(self.updated_before),
        )


def require_sources(reader: Reader, filters: RagFilters) -> None:
    """InvalidArgument: a source that the filter names is unknown in the caller's namespace."""
    if filters.source_names:
        known = {source.name for source in reader.sources.all()}
        if unknown := [name for name in filters.source_names if name not in known]:
            raise unknown_source(unknown[0], known, field="filters.source_names")


def unknown_source(name: str, known: Collection[str], *, field: str) -> InvalidArgument:
    hint = nearest(name[:ECHO_CHARS_MAX], known)
    meant = f" Did you mean {hint!r}?" if hint else ""
    return InvalidArgument(
        f"There is no source {name[:ECHO_CHARS_MAX]!r}.{meant}", field=field, sources=sorted(known)
    )


def _stored_ids(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(stored_id, given)))


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


class SearchReturn(Arguments):
    include_title: bool = True
    include_metadata: bool = True
    include_snippets: bool = False


class Clock:
    """Measures a call for its `stats`, and says what is left of its time."""

    def __init__(self) -> None:
        self._started_s = time.perf_counter()

    @property
    def ms(self) -> float:
        return round((time.perf_counter() - self._started_s) * 1000, 3)

    @property
    def left_s(self) -> float:
        """For the search itself: it is interrupted then, not left running unheard."""
        return max(0.05, RAG_SECONDS_MAX - (time.perf_counter() - self._started_s))


def hits_wanted(k: int) -> int:
    """What is asked for, within the cap; a caller that asks for more is told by `truncated`."""
    return min(k, SEARCH_LIMIT_MAX)


class HitPlace(TypedDict):
    """Where a chunk is from."""

    chunk_id: str
    doc_id: str
    source_id: int
    source_name: str
    updated_at: str


class HitRelevance(TypedDict):
    relevance: float
    """From 0 to 1; compares across searches."""


class HitParts(TypedDict, total=False):
    """What is shown of a chunk on request."""

    title: str
    metadata: Mapping[str, Any]
    snippet: str


class CallStats(TypedDict):
    ms: float


class CandidateCounts(TypedDict):
    fts: int
    vec: int


class SearchStats(TypedDict):
    mode: NotRequired[str]
    candidates: NotRequired[CandidateCounts]
    k_requested: int
    k_returned: int
    ms: float


class SearchAnswer(TypedDict, Generic[H]):
    results: list[H]
    truncated: bool
    stats: SearchStats
    left_out: NotRequired[LeftOut]
    note: NotRequired[str]
    weak: NotRequired[bool]
    """No hit is good."""


def hit_place(view: ChunkView) -> HitPlace:
    return {
        "chunk_id": view.chunk_id,
        "doc_id": view.document_id,
        "source_id": view.source_id,
        "source_name": view.source_name,
        "updated_at": to_iso(view.updated_at_us),
    }


def hit_parts(view: ChunkView, include: SearchReturn, snippet_text: str | None) -> HitParts:
    parts: HitParts = {}
    if include.include_title:
        parts["title"] = view.title
    if include.include_metadata:
        parts["metadata"] = view.metadata
    if snippet_text is not None:
        parts["snippet"] = snippet_text
    return parts


def search_answer(
    hits: Sequence[H],
    *,
    k: int,
    more: bool,
    is_judged: bool = True,
    clock: Clock,
    missing: Sequence[Missing] = (),
    notes: Sequence[str] = (),
    mode: str = "",
    candidates: CandidateCounts | None = None,
) -> SearchAnswer[H]:
    """`more`: there are hits beyond these; only a caller that asked for more than the cap misses
    them. `is_judged`: if no hit is good, it is said."""
    stats: SearchStats = {"k_requested": k, "k_returned": len(hits), "ms": clock.ms}
    if candidates is not None:
        stats = {"mode": mode, "candidates": candidates, **stats}
    is_cut = more and k > SEARCH_LIMIT_MAX
    answer: SearchAnswer[H] = {"results": [], "truncated": is_cut, "stats": stats}
    if missing:
        answer["left_out"] = parts_of(missing)
    said = [*notes_of(missing), *notes]
    if is_judged and is_weak(hit["relevance"] for hit in hits):
        answer["weak"] = True
        said += [WEAK_NOTE] if hits else []
    if said:
        answer["note"] = "; ".join(said)
    kept = fit_items(hits, bytes_left(answer))
    answer["results"] = kept
    answer["truncated"] = is_cut or len(kept) < len(hits)
    stats["k_returned"] = len(kept)
    stats["ms"] = clock.ms
    return answer


def bytes_left(answer: Mapping[str, Any]) -> int:
    """For the items of an answer that is otherwise complete."""
    return RAG_RESPONSE_BYTES_MAX - size_bytes(answer) - _SPARE_BYTES


def rounded_relevance(score: float) -> float:
    """A keyword score as `score_fts`: between 0 and 1, higher is better."""
    return round(word_relevance(score), 6)


def rounded_cosine(cosine: float) -> float:
    """As `score_vec`. Stored vectors are rounded, so a cosine may end up a little over 1."""
    return round(min(1.0, cosine), 6)


def index_notes(reader: Reader, identity: str) -> list[str]:
    """What a search by meaning cannot find yet."""
    coverage = reader.vectors.coverage(identity)
    notes = [coverage.note] if coverage.note else []
    if coverage.pending:
        notes.append(f"{coverage.pending} documents have no vectors yet")
    return notes


def stored_id(given: str) -> str | None:
    """A document's id in the form in which it is stored; None: no document can have it."""
    try:
        return normalize.document_id(given)
    except InvalidArgument:
        return None


def place_of(chunk_id: str) -> tuple[str | None, int]:
    """`<document>#<n>` → the document, as `stored_id` has it, and the number."""
    document_id, mark, number = chunk_id.rpartition("#")
    if not mark or not _CHUNK_NUMBER.fullmatch(number):
        raise InvalidArgument(
            f"{chunk_id[:ECHO_CHARS_MAX]!r} is not a chunk id (<document>#<number>).",
            field="chunk_ids",
        )
    return stored_id(document_id), int(number)

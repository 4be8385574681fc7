"""The two legs of a search, each bringing its best passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from commonplace.embed.port import Vectors
from commonplace.model.query import Filter
from commonplace.store.port import Reader, Scored
from commonplace.text.tokens import Query


@dataclass(frozen=True, slots=True)
class Candidates:
    lexical: Sequence[Scored] = ()
    vector: Sequence[Scored] = ()
    similarities: dict[int, float] = field(default_factory=dict)
    """The cosine of every candidate that has a vector, whichever leg brought it."""


def gather(
    reader: Reader,
    query: Query,
    wanted: Filter,
    *,
    identity: str,
    vector: Vectors | None,
    lexical_max: int,
    vector_max: int,
) -> Candidates:
    """Both legs on one snapshot. Without a vector there is only the lexical one."""
    lexical = reader.lexical.search(query, limit=lexical_max, wanted=wanted)
    if vector is None:
        return Candidates(lexical)
    near = [] if is_strict(query) else reader.vectors.search(identity, vector, vector_max, wanted)
    similarities = reader.vectors.scores(identity, vector, (key for key, _ in lexical))
    similarities.update(near)
    return Candidates(lexical, near, similarities)


def is_strict(query: Query) -> bool:
    """Does the query demand or forbid words? Then nearness in meaning alone is not enough."""
    return bool(query.phrases or query.excluded or query.title_terms)

"""What a search had to do without, and how its answer says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Part = Literal["keywords", "vectors", "quotations", "reranker"]

_INSTEAD: dict[Part, str] = {
    "keywords": "found by meaning only",
    "vectors": "keywords only",
    "quotations": "only their words were looked for",
    "reranker": "the order is that of the search alone",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a search that could not be asked, or not in time."""

    part: Part
    reason: str

    @property
    def note(self) -> str:
        return f"{self.reason.rstrip('.')}: {_INSTEAD[self.part]}"


LATE_WORDS = Missing("keywords", "The keyword search took too long")
LATE_VECTORS = Missing("vectors", "The vector search took too long")
LATE_QUOTATIONS = Missing("quotations", "Quotations could not be looked for in time")


def parts_of(missing: Iterable[Missing]) -> list[Part]:
    return list(dict.fromkeys(item.part for item in missing))


def notes_of(missing: Iterable[Missing]) -> list[str]:
    return [item.note for item in missing]

"""How a source cuts its documents into chunks; kept in its definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from zibaldone.errors import InvalidArgument
from zibaldone.limits import (
    CHUNK_MINIMUM_CHARS_DEFAULT,
    CHUNK_OVERLAP_CHARS_DEFAULT,
    CHUNK_SIZE_CHARS_DEFAULT,
    CHUNK_SIZE_CHARS_MAX,
    CHUNK_SIZE_CHARS_MIN,
)

CutBy = Literal["structure", "size"]
CUTS: tuple[CutBy, ...] = get_args(CutBy)

_SIZES = ("size_chars", "overlap_chars", "minimum_chars")


@dataclass(frozen=True, slots=True)
class Chunking:
    """By structure (headings, paragraphs, sentences), or by size: windows of so many characters."""

    by: CutBy = "structure"
    size_chars: int = CHUNK_SIZE_CHARS_DEFAULT
    """Length of a window. This and the next two count only when `by` is "size"."""
    overlap_chars: int = CHUNK_OVERLAP_CHARS_DEFAULT
    """Characters at the start of a window that repeat the end of the one before."""
    minimum_chars: int = CHUNK_MINIMUM_CHARS_DEFAULT
    """A last window shorter than this is joined to the one before."""

    def __post_init__(self) -> None:
        if self.by not in CUTS:
            raise InvalidArgument(f"by must be {' or '.join(CUTS)}, not {self.by!r}.", field="by")
        _require("size_chars", self.size_chars, CHUNK_SIZE_CHARS_MIN, CHUNK_SIZE_CHARS_MAX)
        # With more than half, each character would be in three or more windows.
        _require("overlap_chars", self.overlap_chars, 0, self.size_chars // 2)
        _require("minimum_chars", self.minimum_chars, 0, self.size_chars)

    @classmethod
    def by_size(
        cls,
        size_chars: int = CHUNK_SIZE_CHARS_DEFAULT,
        overlap_chars: int | None = None,
        minimum_chars: int | None = None,
    ) -> Chunking:
        """Windows of a size; unset values scale with it."""
        _require("size_chars", size_chars, CHUNK_SIZE_CHARS_MIN, CHUNK_SIZE_CHARS_MAX)
        overlap = size_chars * CHUNK_OVERLAP_CHARS_DEFAULT // CHUNK_SIZE_CHARS_DEFAULT
        minimum = size_chars * CHUNK_MINIMUM_CHARS_DEFAULT // CHUNK_SIZE_CHARS_DEFAULT
        return cls(
            "size",
            size_chars,
            overlap if overlap_chars is None else overlap_chars,
            minimum if minimum_chars is None else minimum_chars,
        )

    @classmethod
    def from_definition(cls, definition: object) -> Chunking:
        """The chunking in a source's definition; by structure if it has none."""
        if not isinstance(definition, dict):
            raise InvalidArgument("the definition is not an object.", field="definition")
        return cls.from_dict(definition.get("chunking", {}))

    @classmethod
    def from_dict(cls, value: object) -> Chunking:
        if not isinstance(value, dict):
            raise InvalidArgument("chunking must be an object.", field="chunking")
        by = value.get("by", "structure")
        allowed = {"by", *_SIZES} if by == "size" else {"by"}
        if by in CUTS and (unknown := value.keys() - allowed):
            name = min(map(str, unknown))
            raise InvalidArgument(f"chunking by {by} has no {name!r}.", field=name)
        if by == "size":
            return cls.by_size(**{name: value[name] for name in _SIZES if name in value})
        return cls(cast("CutBy", by))

    def as_dict(self) -> dict[str, Any]:
        if self.by == "structure":
            return {"by": self.by}
        return {"by": self.by, **{name: getattr(self, name) for name in _SIZES}}


def _require(name: str, value: object, least: int, most: int) -> None:
    # A definition is JSON that anybody may have written: true is no number of characters.
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgument(
            f"The {name.removesuffix('_chars')} must be a whole number of characters from {least} "
            f"to {most}, not {value!r}.",
            field=name,
        )

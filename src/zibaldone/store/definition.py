"""A source's definition as engines store it: JSON text, of which `chunking` is used so far."""

from __future__ import annotations

from functools import lru_cache

import orjson

from zibaldone.errors import InvalidArgument, StorageCorrupt
from zibaldone.model.chunking import Chunking


@lru_cache(maxsize=256)
def parse_chunking(definition: str) -> Chunking:
    """Cached: the same few definitions are read by every write. InvalidArgument: it is unusable."""
    return Chunking.from_definition(orjson.loads(definition))


def cuts_alike(one: str, other: str) -> bool:
    """Whether two definitions have the same chunking; all that cannot be used are alike."""
    return _chunking_or_none(one) == _chunking_or_none(other)


def _chunking_or_none(definition: str) -> Chunking | None:
    try:
        return parse_chunking(definition)
    except InvalidArgument:
        return None


def stored_chunking(name: str, definition: str) -> Chunking:
    """The chunking of a source that is to be used now."""
    try:
        return parse_chunking(definition)
    except InvalidArgument as error:
        raise StorageCorrupt(
            f"The definition of the source {name!r} cannot be used: {error.message} "
            f"'zibaldone sources chunking {name} --by structure' replaces it.",
            source=name,
        ) from error

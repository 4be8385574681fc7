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

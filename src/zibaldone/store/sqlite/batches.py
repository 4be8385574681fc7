"""How much one statement is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 1_000
"""Chunks of one statement. SQLite lets go of the interpreter at each step, and where others compute
it takes a millisecond to get it back: with a step for each chunk, a long document would hold the
writer for twenty seconds."""


def batched(items: Iterable[T]) -> Iterator[Sequence[T]]:
    left = iter(items)
    while some := list(islice(left, _AT_ONCE)):
        yield some

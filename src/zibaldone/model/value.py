"""Values that are made for every request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[C]) -> type[C]:
    """A dataclass that the type checker treats as frozen.

    At run time it is not: `frozen=True` makes an object of twenty fields in 2 µs, this in 0.3.
    """
    return dataclass(slots=True)(cls)

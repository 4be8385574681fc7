"""Which names a tool's arguments may have, for finding those that they may not.

Pydantic describes every unknown name before it refuses; of a million that takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel

_NAME_CHARS_MAX = 64
"""Of a wrong name that is compared with the right ones."""

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Names:
    known: frozenset[str]
    listed: tuple[str, ...]
    """Those that a caller is told of, in their order."""
    nested: Mapping[str, Names]
    """Of the arguments that are objects with names of their own, or lists of such."""


@cache
def names_of(model: type[BaseModel]) -> Names:
    known: set[str] = set()
    nested: dict[str, Names] = {}
    for field, info in model.model_fields.items():
        alias = info.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        names = {field, *(choice for choice in choices if isinstance(choice, str))}
        known |= names
        for inner in _models_in(info.annotation):
            nested |= dict.fromkeys(names, names_of(inner))
    listed = model.model_json_schema(by_alias=False).get("properties", {})
    # Arguments that are words of Python (`return`) have an underscore in the model only.
    return Names(frozenset(known), tuple(name.rstrip("_") for name in listed), nested)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def unknown_places(
    names: Names, arguments: Mapping[str, Any], place: Place = ()
) -> Iterator[Place]:
    """Where there are names that the model does not know, found one by one as they are taken."""
    yield from ((*place, name) for name in arguments if name not in names.known)
    for name, inner in names.nested.items():
        value = arguments.get(name)
        if isinstance(value, dict):
            yield from unknown_places(inner, value, (*place, name))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, dict):
                    yield from unknown_places(inner, item, (*place, name, number))


def names_at(names: Names, place: Place) -> Names:
    """The names that are known where a place is, of which the last part is a name."""
    for part in place[:-1]:
        if isinstance(part, str):
            names = names.nested.get(part, names)
    return names


def nearest(names: Names, wrong: str) -> str | None:
    """The name that was most likely meant; None: none is like it."""
    found = get_close_matches(wrong[:_NAME_CHARS_MAX].lower(), names.listed, n=1, cutoff=0.6)
    return found[0] if found else None

"""Links between documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LinkKind = Literal["path", "name"]
KINDS: tuple[LinkKind, ...] = ("path", "name")


@dataclass(frozen=True, slots=True)
class Link:
    """What a document points to: a path, or a name as wikis write it."""

    kind: LinkKind
    target: str
    """A path from the top, or a name in lower case."""


@dataclass(frozen=True, slots=True)
class Links:
    """What is kept of a document for finding links from it and to it."""

    out: tuple[Link, ...]
    names: tuple[str, ...]
    """By which a wiki link can mean it: its path, the last part of it, its title."""


@dataclass(frozen=True, slots=True)
class LinkedDocument:
    document_id: str
    title: str

"""The protocol's revisions, as a table of what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Era = Literal["legacy", "modern"]


@dataclass(frozen=True, slots=True)
class Version:
    name: str
    era: Era
    batches: bool = False
    annotations: bool = True
    """Tools may carry hints (read-only, destructive, …)."""
    structured: bool = True
    """Results may carry `structuredContent`, tools a title."""


VERSIONS: dict[str, Version] = {
    version.name: version
    for version in (
        Version("2024-11-05", "legacy", annotations=False, structured=False),
        Version("2025-03-26", "legacy", batches=True, structured=False),
        Version("2025-06-18", "legacy"),
        Version("2025-11-25", "legacy"),
        Version("2026-07-28", "modern"),
    )
}

ASSUMED_LEGACY = VERSIONS["2025-03-26"]
"""What a request without any version speaks."""

NEWEST_LEGACY = VERSIONS["2025-11-25"]
NEWEST_MODERN = VERSIONS["2026-07-28"]


def negotiated(wanted: object) -> Version:
    """What `initialize` answers: the version asked for if we speak it, else our newest."""
    version = VERSIONS.get(wanted) if isinstance(wanted, str) else None
    return version if version is not None and version.era == "legacy" else NEWEST_LEGACY

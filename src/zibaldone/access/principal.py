"""A caller: identity, namespace and rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effect = Literal["read", "write", "delete", "admin"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "delete", "admin")

NAMESPACE_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Tenant:
    """What a caller can see. The store applies it to every statement."""

    namespace: str = NAMESPACE_DEFAULT
    prefix: str = ""
    """Only ids that start with this exist for the caller."""


@dataclass(frozen=True, slots=True)
class Principal:
    key_id: str
    """Identifies the caller in the audit log; never the secret."""
    tenant: Tenant = Tenant()
    effects: frozenset[Effect] = frozenset(EFFECTS)
    profiles: frozenset[str] | None = None
    """Profiles the caller may use; None means all."""
    by_token: bool = False
    """Authenticated by an access token, whose client can request more scopes."""


LOCAL = Principal(key_id="local")
"""The operator's own shell, and callers on loopback while no key exists."""

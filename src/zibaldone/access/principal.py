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
    """Only ids that start with this exist for the caller. That of a key or a token is a folder."""


@dataclass(frozen=True, slots=True)
class Principal:
    key_id: str
    """Identifies the caller in the audit log; never the secret."""
    tenant: Tenant = Tenant()
    effects: frozenset[Effect] = frozenset(EFFECTS)
    profiles: frozenset[str] | None = None
    """Profiles the caller may use; None means all."""
    tools: frozenset[str] = frozenset()
    """Names of the tools in `profiles`: where those are limited the caller may call no others."""
    by_token: bool = False
    """Authenticated by an access token, whose client can request more scopes."""


def as_folder(prefix: str) -> str:
    """The prefix with a slash at its end, so that "pub" does not open "public/"; "" is all."""
    return prefix if not prefix or prefix.endswith("/") else prefix + "/"


LOCAL = Principal(key_id="local")
"""The operator's own shell, and callers on loopback while no key exists."""

TOKEN_ID_START = "oauth:"  # noqa: S105 - no secret
"""How `key_id` begins where the caller has an access token."""


def has_stored_key(key_id: str) -> bool:
    """Is it the id of an API key, which the store has until it is deleted?"""
    return key_id != LOCAL.key_id and not key_id.startswith(TOKEN_ID_START)

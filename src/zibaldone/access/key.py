"""An API key as it is stored: everything except the secret."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from zibaldone.access.principal import Effect, Principal, Tenant, as_folder


@dataclass(frozen=True, slots=True)
class ApiKey:
    key_id: str
    secret_hash: bytes
    label: str
    namespace: str
    path_prefix: str
    """The folder it opens, maybe without its last slash; "" is everything."""
    effects: tuple[Effect, ...]
    profiles: tuple[str, ...] | None
    created_at_us: int
    expires_at_us: int | None = None
    revoked_at_us: int | None = None

    @property
    def principal(self) -> Principal:
        return Principal(
            key_id=self.key_id,
            tenant=Tenant(self.namespace, as_folder(self.path_prefix)),
            effects=frozenset(self.effects),
            profiles=None if self.profiles is None else frozenset(self.profiles),
        )

    def is_valid(self, now_us: int) -> bool:
        expired = self.expires_at_us is not None and now_us >= self.expires_at_us
        return self.revoked_at_us is None and not expired


def secret_hash(secret: str) -> bytes:
    """One fast hash is enough: a secret is 256 random bits and cannot be guessed."""
    return hashlib.sha256(secret.encode()).digest()

"""Who calls? An API key, a bearer token of a trusted issuer, or, on loopback, the operator.

Closed as soon as a key exists or an issuer is set; until then only loopback is served at all.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from zibaldone.access.decide import require_profile
from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.loopback import is_loopback
from zibaldone.access.principal import LOCAL, Principal, Tenant
from zibaldone.errors import InsufficientScope, NotFound, Unauthenticated
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.tools.profiles import Profile
from zibaldone.web.http import HttpScope, header
from zibaldone.web.resource import ProtectedResource

_log = logging.getLogger("zibaldone.web")

TOKEN_KEY = "zibaldone.token"  # noqa: S105 - where a capability route leaves its token
_KEYS_FRESH_SECONDS = 1.0
"""A key that another process revoked is refused this much later at most."""

VerifyToken = Callable[[str, Profile | None], Awaitable[Principal]]

_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")


@dataclass(frozen=True, slots=True)
class AuthRules:
    verify_token: VerifyToken | None = None
    """Reads a token of the trusted issuer; raises Unauthenticated. None: no issuer is set."""
    resource: ProtectedResource | None = None
    """What a refusal tells an OAuth client to read; set when `verify_token` is."""
    open_full_profile: bool = False


class Authenticator:
    def __init__(self, store: Store, rules: AuthRules) -> None:
        self._store = store
        self._rules = rules
        self._keys: dict[bytes, ApiKey] = {}
        self._read_at_s = float("-inf")

    async def authenticate(self, scope: HttpScope, profile: Profile | None = None) -> Principal:
        """The caller, or Unauthenticated; before the body is read and before anything is parsed."""
        principal = await self._principal(scope, profile)
        if profile is not None:
            if not profile.is_public and not self._rules.open_full_profile and _is_remote(scope):
                raise NotFound("Nothing is served here.")
            require_profile(principal, profile.name)
        return principal

    def challenged(
        self, error: InsufficientScope, profile: Profile | None = None
    ) -> InsufficientScope:
        """The same refusal of a token, saying which scopes its client should ask for."""
        resource = self._rules.resource
        if resource is None:
            return error
        scopes = tuple(error.details.get("scopes", ())) or resource.scopes(profile)
        refusal = InsufficientScope(error.message, scopes=list(scopes))
        refusal.challenge = resource.challenge(
            profile, error="insufficient_scope", description=error.message, scopes=scopes
        )
        return refusal

    async def _principal(self, scope: HttpScope, profile: Profile | None) -> Principal:
        keys = await self._current_keys()
        if not keys and self._rules.verify_token is None:
            if TOKEN_KEY in scope:
                raise Unauthenticated("That address is not valid.")
            return LOCAL
        # A token of the issuer does not belong into a URL, so none is asked for there.
        resource = None if TOKEN_KEY in scope else self._rules.resource
        secret = _given_secret(scope)
        if secret is None:
            message = "Send an API key as x-api-key or Authorization: Bearer."
            raise _refusal(message, resource, profile)
        digest = secret_hash(secret)
        key = keys.get(digest)
        if key is not None and hmac.compare_digest(key.secret_hash, digest):
            if key.is_valid(now_us()):
                return key.principal
            message = "The API key has expired or was revoked."
        elif resource is not None and self._rules.verify_token is not None:
            try:
                return await self._rules.verify_token(secret, profile)
            except InsufficientScope as error:
                raise self.challenged(error, profile) from None
            except Unauthenticated as error:
                message = error.message
        else:
            message = "The API key is not known."
        raise _refusal(message, resource, profile, error="invalid_token")

    async def _current_keys(self) -> dict[bytes, ApiKey]:
        """All keys, ended ones too: one that was revoked still means that keys are in use."""
        if time.monotonic() - self._read_at_s > _KEYS_FRESH_SECONDS:
            keys = await self._store.read(
                Tenant(), lambda reader: reader.api_keys.all(), is_small=True
            )
            self._keys = {key.secret_hash: key for key in keys}
            self._read_at_s = time.monotonic()
        return self._keys


def _refusal(
    message: str, resource: ProtectedResource | None, profile: Profile | None, error: str = ""
) -> Unauthenticated:
    refusal = Unauthenticated(message)
    if resource is not None:
        description = message if error else ""
        refusal.challenge = resource.challenge(profile, error=error, description=description)
    return refusal


def _given_secret(scope: HttpScope) -> str | None:
    in_url: str | None = scope.get(TOKEN_KEY)
    if in_url is not None:
        return in_url
    key = header(scope, b"x-api-key")
    if key:
        return key
    scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _is_remote(scope: HttpScope) -> bool:
    """From another machine, directly or through a proxy here."""
    if any(header(scope, name) is not None for name in _FORWARDED):
        return True
    client = scope.get("client")
    return client is not None and not is_loopback(client[0])

"""Authentication: an API key, an access token of the trusted issuer, or nothing on loopback.

Once a key exists or an issuer is set, every caller must authenticate. Until then, and after the
last key was deleted, only this machine is served, as the operator.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from zibaldone.access.decide import require_profile
from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.loopback import is_loopback
from zibaldone.access.principal import LOCAL, Principal, Tenant
from zibaldone.access.share import AUTHENTICATION, SHARE
from zibaldone.errors import InsufficientScope, NotFound, Unauthenticated
from zibaldone.model.instant import now_us
from zibaldone.store.port import Store
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.profiles import Profile
from zibaldone.web.http import HttpScope, header
from zibaldone.web.resource import ProtectedResource

_log = logging.getLogger("zibaldone.web")

TOKEN_KEY = "zibaldone.token"  # noqa: S105 - scope key for the token of a capability route
_KEYS_FRESH_SECONDS = 1.0
"""A key that another process revoked is refused after this time at most."""
_KEYS_UNKNOWN_SECONDS = 0.1
"""A key that is not known may be new: the keys are read again, but no more often than this."""

VerifyToken = Callable[[str, Profile | None], Awaitable[Principal]]

_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")


@dataclass(frozen=True, slots=True)
class AuthRules:
    verify_token: VerifyToken | None = None
    """Verifies a token of the trusted issuer, or raises Unauthenticated. None: no issuer is set."""
    resource: ProtectedResource | None = None
    """Metadata that a refusal points OAuth clients to; set when `verify_token` is."""
    open_full_profile: bool = False
    open_without_keys: bool = True
    """Whether callers need no key while there is none; False where other machines are served."""


class Authenticator:
    def __init__(self, store: Store, rules: AuthRules, catalogue: Catalogue) -> None:
        self._store = store
        self._rules = rules
        self._catalogue = catalogue
        self._keys: dict[bytes, ApiKey] = {}
        self._read_at_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def authenticate(self, scope: HttpScope, profile: Profile | None = None) -> Principal:
        """The caller, or Unauthenticated. Called before the body is read or anything is parsed."""
        principal = await self._principal(scope, profile)
        if profile is not None:
            if not profile.is_public and not self._rules.open_full_profile and is_remote(scope):
                raise NotFound("Nothing is served here.")
            require_profile(principal, profile.name)
        return principal

    def challenged(
        self, error: InsufficientScope, profile: Profile | None = None
    ) -> InsufficientScope:
        """The same error with a challenge that names the scopes the client should request."""
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
        keys = self._keys
        if time.monotonic() - self._read_at_s > _KEYS_FRESH_SECONDS:
            keys = await self._fresh_keys(_KEYS_FRESH_SECONDS)
        if not keys and self._rules.verify_token is None and self._rules.open_without_keys:
            if TOKEN_KEY in scope:
                raise Unauthenticated("This URL is not valid.")
            return LOCAL
        # Access tokens do not belong in URLs, so a capability URL is not asked for one.
        resource = None if TOKEN_KEY in scope else self._rules.resource
        secret = _secret_of(scope)
        if secret is None:
            message = "An API key is required. Send it as x-api-key or Authorization: Bearer."
            raise _refusal(message, resource, profile)
        key = await self._key_of(secret, keys)
        if key is not None:
            if key.is_valid(now_us()):
                return self._bound(key.principal)
            message = "The API key has expired or was revoked."
        elif resource is not None and self._rules.verify_token is not None:
            try:
                return await self._rules.verify_token(secret, profile)
            except InsufficientScope as error:
                raise self.challenged(error, profile) from None
            except Unauthenticated as error:
                message = error.message
        else:
            message = "The API key is unknown."
        raise _refusal(message, resource, profile, error="invalid_token")

    def _bound(self, principal: Principal) -> Principal:
        """The caller with the tools of the profiles that it is limited to."""
        if principal.profiles is None:
            return principal
        return replace(principal, tools=self._catalogue.tools_of(principal.profiles))

    async def _key_of(self, secret: str, keys: dict[bytes, ApiKey]) -> ApiKey | None:
        """The key with this secret. One that is not known may have been made just now."""
        digest = secret_hash(secret)
        if digest not in keys and self._rules.verify_token is None:
            keys = await self._fresh_keys(_KEYS_UNKNOWN_SECONDS)
        key = keys.get(digest)
        return key if key is not None and hmac.compare_digest(key.secret_hash, digest) else None

    async def _fresh_keys(self, seconds_max: float) -> dict[bytes, ApiKey]:
        """The keys as they were so long ago or later. All who ask at a time share one read."""
        asked_s = time.monotonic()
        while asked_s - self._read_at_s > seconds_max:
            # One that is over may have begun too early. To await it would not wait: nobody else
            # would run, for ever.
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_keys())
                self._reading.add_done_callback(_take_note)
            await asyncio.shield(self._reading)
        return self._keys

    async def _read_keys(self) -> None:
        """All keys, also ended ones: after a key was revoked, keys are still required."""
        SHARE.set(AUTHENTICATION)
        began_s = time.monotonic()
        keys = await self._store.read(Tenant(), lambda reader: reader.api_keys.all(), is_small=True)
        self._keys = {key.secret_hash: key for key in keys}
        self._read_at_s = began_s  # what was revoked while it was read may be missing


def _take_note(reading: asyncio.Task[None]) -> None:
    if not reading.cancelled():
        reading.exception()  # maybe nobody waits any more who would be told


def _refusal(
    message: str, resource: ProtectedResource | None, profile: Profile | None, error: str = ""
) -> Unauthenticated:
    refusal = Unauthenticated(message)
    if resource is not None:
        description = message if error else ""
        refusal.challenge = resource.challenge(profile, error=error, description=description)
    return refusal


def _secret_of(scope: HttpScope) -> str | None:
    in_url: str | None = scope.get(TOKEN_KEY)
    if in_url is not None:
        return in_url
    key = header(scope, b"x-api-key")
    if key:
        return key
    scheme, _, token = (header(scope, b"authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_remote(scope: HttpScope) -> bool:
    """Whether the request comes from another machine, directly or through a proxy."""
    if any(header(scope, name) is not None for name in _FORWARDED):
        return True
    client = scope.get("client")
    return client is not None and not is_loopback(client[0])

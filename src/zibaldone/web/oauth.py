"""Verify access tokens of the trusted issuer: signature, issuer, audience, time.

Only signed tokens (JWT, RFC 9068) are accepted; the issuer is not asked about each token.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import Any

from zibaldone import extras
from zibaldone.access.decide import scope_of
from zibaldone.access.principal import (
    EFFECTS,
    NAMESPACE_DEFAULT,
    TOKEN_ID_START,
    Effect,
    Principal,
    Tenant,
)
from zibaldone.errors import InsufficientScope, InvalidArgument, Unauthenticated
from zibaldone.limits import (
    SUBJECT_CHARS_MAX,
    TOKEN_CHARS_MAX,
    TOKEN_LEEWAY_SECONDS,
    TOKENS_KNOWN_MAX,
)
from zibaldone.text import normalize
from zibaldone.tools.profiles import Profile
from zibaldone.web.issuer import ALGORITHMS, IssuerKeys, VerifyingKey
from zibaldone.web.resource import ProtectedResource

NAMESPACE_CLAIM = "zibaldone_namespace"
PREFIX_CLAIM = "zibaldone_prefix"
_REQUIRED_CLAIMS = ("iss", "aud", "exp", "sub")
_HASHED = "sha256-"
_SAFE_SUBJECT = re.compile(rf"[\w.:/+=@|-]{{1,{SUBJECT_CHARS_MAX}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """A verified token; it stays valid while its signing key is one of the issuer's."""

    key: VerifyingKey
    key_id: str | None
    algorithm: str
    expires_at_s: float
    principal: Principal


class TokenVerifier:
    def __init__(self, keys: IssuerKeys, resource: ProtectedResource, audience: str = "") -> None:
        self._jwt = extras.require("oauth", "jwt")
        self._keys = keys
        self._resource = resource
        self._audience = audience
        self._known: dict[tuple[bytes, str], VerifiedToken] = {}

    async def __call__(self, token: str, profile: Profile | None) -> Principal:
        """The caller, or Unauthenticated if the token is not valid for this server."""
        name = (hashlib.sha256(token.encode()).digest(), profile.path if profile else "")
        known = self._known.get(name)
        if (
            known is not None
            and time.time() < known.expires_at_s + TOKEN_LEEWAY_SECONDS
            and await self._keys.find(known.key_id, known.algorithm) is known.key
        ):
            return known.principal
        known = await self._verify(token, profile)
        self._known.pop(name, None)
        if len(self._known) >= TOKENS_KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[name] = known
        return known.principal

    async def _verify(self, token: str, profile: Profile | None) -> VerifiedToken:
        key_id, algorithm = self._header(token)
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            raise Unauthenticated("The token is not signed with a key of its issuer.")
        claims = self._claims(token, key, algorithm, profile)
        principal = Principal(
            key_id=TOKEN_ID_START + _log_name(claims["sub"]),
            tenant=_tenant(claims),
            effects=_effects(claims),
            by_token=True,
        )
        return VerifiedToken(key, key_id, algorithm, claims["exp"], principal)

    def _header(self, token: str) -> tuple[str | None, str]:
        if len(token) > TOKEN_CHARS_MAX or not token.isascii() or token.count(".") != 2:
            raise Unauthenticated("This is neither a known API key nor a token of the issuer.")
        try:
            header = self._jwt.get_unverified_header(token)
        except (self._jwt.PyJWTError, ValueError, RecursionError):
            raise Unauthenticated("The token is malformed.") from None
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise Unauthenticated("The token is signed with an algorithm that is not accepted.")
        return header.get("kid"), algorithm

    def _claims(
        self, token: str, key: VerifyingKey, algorithm: str, profile: Profile | None
    ) -> dict[str, Any]:
        audiences = (self._audience,) if self._audience else self._resource.audiences(profile)
        try:
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key.public_key,
                algorithms=[algorithm],
                audience=audiences,
                issuer=self._keys.issuer,
                leeway=TOKEN_LEEWAY_SECONDS,
                options={"require": list(_REQUIRED_CLAIMS), "enforce_minimum_key_length": True},
            )
            claims["exp"] = float(claims["exp"])  # a number of any length may stand there
        except self._jwt.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.") from None
        except self._jwt.InvalidAudienceError:
            raise Unauthenticated("The token is for another audience.") from None
        except self._jwt.InvalidIssuerError:
            raise Unauthenticated("The token is from another issuer.") from None
        except self._jwt.MissingRequiredClaimError as problem:
            raise Unauthenticated(f"The token has no claim {problem.claim!r}.") from None
        except (self._jwt.PyJWTError, ValueError, TypeError, OverflowError):
            raise Unauthenticated("The token is invalid.") from None
        return claims


def _log_name(subject: str) -> str:
    """The subject, or its hash if it does not fit a log line, or is written like such a hash: where
    people choose their subject, one could be another's name."""
    if _SAFE_SUBJECT.fullmatch(subject) and not subject.startswith(_HASHED):
        return subject
    return _HASHED + hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()[:32]


def _tenant(claims: dict[str, Any]) -> Tenant:
    """What the caller can see. A claim that cannot be parsed is refused."""
    namespace = claims.get(NAMESPACE_CLAIM, NAMESPACE_DEFAULT)
    prefix = claims.get(PREFIX_CLAIM, "")
    for name, value in ((NAMESPACE_CLAIM, namespace), (PREFIX_CLAIM, prefix)):
        if not isinstance(value, str):
            raise Unauthenticated(f"The claim {name} of the token must be text.")
    try:
        return Tenant(normalize.namespace(namespace), normalize.folder(prefix, PREFIX_CLAIM))
    except InvalidArgument as problem:
        raise Unauthenticated(f"The claims of the token are invalid: {problem.message}") from None


def _effects(claims: dict[str, Any]) -> frozenset[Effect]:
    granted = claims.get("scope", claims.get("scp", ()))  # some issuers write scp
    words = granted.split() if isinstance(granted, str) else granted
    if not isinstance(words, list | tuple):
        words = ()
    effects = frozenset(effect for effect in EFFECTS if scope_of(effect) in words)
    if not effects:
        raise InsufficientScope("The token has no scope for this server.")
    return effects

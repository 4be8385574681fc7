"""The keys a token issuer signs with: found through its metadata, kept, read again when due.

Anybody can send a token that names a key of their own invention, so what that causes is bounded:
one reading in `issuer_retry_seconds_min`, of bounded size and time, and nobody waits for it whose
token can be checked with the keys at hand.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from zibaldone import __version__, extras
from zibaldone.access.loopback import is_loopback
from zibaldone.errors import ConfigurationError, IssuerUnavailable
from zibaldone.limits import ISSUER_ANSWER_BYTES_MAX, ISSUER_KEYS_MAX, Limits

_log = logging.getLogger("zibaldone.oauth")

_METADATA_NAMES = ("oauth-authorization-server", "openid-configuration")

# Asymmetric ones only: with a shared secret, whoever can check a token can also make one.
_ALGORITHMS: dict[str, frozenset[str]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA"}),
}
ALGORITHMS = frozenset[str]().union(*_ALGORITHMS.values())


class UnusableAnswer(Exception):
    """The issuer answered, but not with what it should."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    key_id: str | None
    algorithms: frozenset[str]
    public_key: Any


@dataclass(frozen=True, slots=True)
class KeySet:
    keys: tuple[VerifyingKey, ...]
    read_at_s: float

    def find(self, key_id: str | None, algorithm: str) -> VerifyingKey | None:
        """The key of that name; without a name, the only one there is for the algorithm."""
        fitting = [
            key
            for key in self.keys
            if algorithm in key.algorithms and (key_id is None or key_id == key.key_id)
        ]
        return fitting[0] if len(fitting) == 1 else None


class IssuerKeys:
    def __init__(self, issuer: str, limits: Limits) -> None:
        _require_issuer(issuer)
        self.issuer = issuer
        self._limits = limits
        self._httpx = extras.require("oauth", "httpx2")
        self._jwt = extras.require("oauth", "jwt")
        extras.require(
            "oauth", "cryptography"
        )  # PyJWT imports without it, and then knows no such key
        # Made once: reading the certificates of the system takes tens of milliseconds.
        self._client = self._httpx.AsyncClient(
            timeout=limits.issuer_answer_seconds_max,
            headers={"User-Agent": f"zibaldone/{__version__}", "Accept": "application/json"},
            limits=self._httpx.Limits(max_keepalive_connections=0),
        )
        self._known: KeySet | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked_at_s = -math.inf
        self._has_failed = False

    async def find(self, key_id: str | None, algorithm: str) -> VerifyingKey | None:
        """The key, or None if the issuer has no such key; IssuerUnavailable if it cannot tell."""
        known = self._usable()
        key = known.find(key_id, algorithm) if known else None
        if known is not None and key is not None:
            if time.monotonic() - known.read_at_s > self._limits.issuer_keys_fresh_seconds:
                self._read_again()
            return key
        reading = self._read_again()
        if reading is not None:
            # Shared: a caller that goes away must not take the answer from the others.
            await asyncio.shield(reading)
        known = self._usable()
        key = known.find(key_id, algorithm) if known else None
        if known is None or (key is None and self._has_failed):
            raise IssuerUnavailable(
                "The token cannot be checked: its issuer does not answer; try again.",
                retry_after=math.ceil(self._limits.issuer_retry_seconds_min),
            )
        return key

    def _usable(self) -> KeySet | None:
        if self._known is None:
            return None
        age_s = time.monotonic() - self._known.read_at_s
        return self._known if age_s <= self._limits.issuer_keys_stale_seconds_max else None

    def _read_again(self) -> asyncio.Task[None] | None:
        """The reading under way, a new one, or None when the last was only just."""
        if self._reading is not None and not self._reading.done():
            return self._reading
        now_s = time.monotonic()
        if now_s - self._asked_at_s < self._limits.issuer_retry_seconds_min:
            return None
        self._asked_at_s = now_s
        self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        self._has_failed = True
        try:
            async with asyncio.timeout(self._limits.issuer_answer_seconds_max):
                keys = await self._fetch_keys()
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError, UnusableAnswer) as problem:
            reason = str(problem) or type(problem).__name__
            _log.warning("the keys of %s cannot be read: %s", self.issuer, reason)
            return
        self._known = KeySet(keys, time.monotonic())
        self._has_failed = False

    async def _fetch_keys(self) -> tuple[VerifyingKey, ...]:
        metadata = await self._fetch_metadata()
        address = metadata.get("jwks_uri")
        may_be_plain = self.issuer.startswith("http:")
        if not isinstance(address, str) or not is_protected(address, may_be_plain=may_be_plain):
            raise UnusableAnswer("its metadata has no jwks_uri under https")
        key_set = await self._get(address)
        listed = key_set.get("keys") if key_set is not None else None
        if not isinstance(listed, list):
            raise UnusableAnswer(f"{address} is not a set of keys")
        keys = tuple(self._parsed(listed[:ISSUER_KEYS_MAX]))
        if not keys:
            raise UnusableAnswer(f"{address} has no key of a kind that is accepted")
        return keys

    async def _fetch_metadata(self) -> dict[str, Any]:
        for address in metadata_addresses(self.issuer):
            metadata = await self._get(address)
            if metadata is None:
                continue
            # Else one tenant of a shared host could speak for another (RFC 8414, section 3.3).
            if metadata.get("issuer") != self.issuer:
                raise UnusableAnswer(
                    f"{address} is the metadata of {str(metadata.get('issuer'))[:200]!r}; "
                    "oauth_issuer must be that, character for character"
                )
            return metadata
        raise UnusableAnswer("it has no metadata at any well-known address")

    async def _get(self, address: str) -> dict[str, Any] | None:
        """A JSON object, or None if there is nothing at the address. No redirect is followed."""
        async with self._client.stream("GET", address, follow_redirects=False) as response:
            if 300 <= response.status_code < 500:
                return None
            if response.status_code != 200:
                raise UnusableAnswer(f"{address} answered {response.status_code}")
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > ISSUER_ANSWER_BYTES_MAX:
                    raise UnusableAnswer(f"{address} has over {ISSUER_ANSWER_BYTES_MAX} bytes")
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise UnusableAnswer(f"{address} is not JSON") from None
        if not isinstance(value, dict):
            raise UnusableAnswer(f"{address} is not a JSON object")
        return value

    def _parsed(self, listed: Iterable[Any]) -> Iterable[VerifyingKey]:
        for jwk in listed:
            algorithms = _algorithms_of(jwk)
            if not algorithms:
                continue  # for encryption, or of a kind that came after this was written
            key_id = jwk.get("kid")
            try:
                public_key = self._jwt.PyJWK(jwk, min(algorithms)).key
            except (self._jwt.PyJWTError, ValueError, TypeError, KeyError):
                _log.warning("a key of %s cannot be read: %.100r", self.issuer, key_id)
                continue
            yield VerifyingKey(key_id if isinstance(key_id, str) else None, algorithms, public_key)


def metadata_addresses(issuer: str) -> tuple[str, ...]:
    """Where an issuer's metadata can be, in the order in which clients look for it."""
    url = urlsplit(issuer)
    origin, path = f"{url.scheme}://{url.netloc}", url.path.rstrip("/")
    inserted = tuple(f"{origin}/.well-known/{name}{path}" for name in _METADATA_NAMES)
    if not path:
        return inserted
    return (*inserted, f"{origin}{path}/.well-known/openid-configuration")


def is_protected(address: str, *, may_be_plain: bool = True) -> bool:
    """Under https, or, where that may be, on this machine, with nobody to listen in between."""
    try:
        url = urlsplit(address)
        host = url.hostname
    except ValueError:
        return False
    is_plain = url.scheme == "http" and may_be_plain and is_loopback(host or "")
    return bool(host) and (url.scheme == "https" or is_plain)


def _algorithms_of(jwk: Any) -> frozenset[str]:
    """What the key may verify: its own algorithm if it names one, else those of its kind."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or "d" in jwk:
        return frozenset()
    kind = "RSA" if jwk.get("kty") == "RSA" else jwk.get("crv")
    fitting = _ALGORITHMS.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
    return fitting & {jwk["alg"]} if isinstance(jwk.get("alg"), str) else fitting


def _require_issuer(issuer: str) -> None:
    is_plain = issuer.isascii() and not any(mark in issuer for mark in '?#@" ')
    if not (is_plain and is_protected(issuer)):
        raise ConfigurationError(
            f"oauth_issuer: {issuer!r} is not the https:// address of an issuer "
            "(http:// is allowed on this machine only)."
        )

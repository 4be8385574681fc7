"""The signing keys of a token issuer: fetched through its metadata, cached and refreshed.

Anyone can send a token with an invented key id, so what that causes is limited: one fetch per
`issuer_retry_seconds_min`, of limited size and time. Callers whose tokens can be verified with the
cached keys never wait for it.
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

# Only asymmetric algorithms: with a shared secret, whoever verifies tokens can also forge them.
_ALGORITHMS: dict[str, frozenset[str]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA"}),
}
ALGORITHMS = frozenset[str]().union(*_ALGORITHMS.values())


class UnusableAnswer(Exception):
    """The issuer answered with something unusable."""


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
        """The key with that id; without an id, the key for the algorithm if there is only one."""
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
        extras.require("oauth", "cryptography")  # PyJWT can be imported without it
        # Created once: reading the system's certificates takes tens of milliseconds.
        self._client = self._httpx.AsyncClient(
            timeout=limits.issuer_answer_seconds_max,
            headers={
                "User-Agent": f"zibaldone/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            limits=self._httpx.Limits(max_keepalive_connections=0),
        )
        self._known: KeySet | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._asked_at_s = -math.inf
        self._has_failed = False

    async def find(self, key_id: str | None, algorithm: str) -> VerifyingKey | None:
        """The key, or None if the issuer has no such key; IssuerUnavailable if that is unknown."""
        known = self._usable()
        key = known.find(key_id, algorithm) if known else None
        if known is not None and key is not None:
            if time.monotonic() - known.read_at_s > self._limits.issuer_keys_fresh_seconds:
                self._refresh()
            return key
        fetching = self._refresh()
        if fetching is not None:
            # Shielded: the task is shared, and one caller may be cancelled.
            await asyncio.shield(fetching)
        known = self._usable()
        key = known.find(key_id, algorithm) if known else None
        if known is None or (key is None and self._has_failed):
            raise IssuerUnavailable(
                "The token cannot be verified because its issuer does not answer. Try again.",
                retry_after=math.ceil(self._limits.issuer_retry_seconds_min),
            )
        return key

    def _usable(self) -> KeySet | None:
        if self._known is None:
            return None
        age_s = time.monotonic() - self._known.read_at_s
        return self._known if age_s <= self._limits.issuer_keys_stale_seconds_max else None

    def _refresh(self) -> asyncio.Task[None] | None:
        """The running fetch, a new one, or None if the last one was too recent."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        now_s = time.monotonic()
        if now_s - self._asked_at_s < self._limits.issuer_retry_seconds_min:
            return None
        self._asked_at_s = now_s
        self._fetching = asyncio.create_task(self._read())
        return self._fetching

    async def _read(self) -> None:
        self._has_failed = True
        try:
            async with asyncio.timeout(self._limits.issuer_answer_seconds_max):
                keys = await self._fetch_keys()
        except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError, UnusableAnswer) as problem:
            reason = str(problem) or type(problem).__name__
            _log.warning("cannot read the keys of %s: %s", self.issuer, reason)
            return
        self._known = KeySet(keys, time.monotonic())
        self._has_failed = False

    async def _fetch_keys(self) -> tuple[VerifyingKey, ...]:
        metadata = await self._fetch_metadata()
        address = metadata.get("jwks_uri")
        may_be_plain = self.issuer.startswith("http:")
        if not isinstance(address, str) or not is_protected(address, may_be_plain=may_be_plain):
            raise UnusableAnswer("its metadata has no https jwks_uri")
        key_set = await self._get(address)
        listed = key_set.get("keys") if key_set is not None else None
        if not isinstance(listed, list):
            raise UnusableAnswer(f"{address} is not a JSON Web Key Set")
        keys = tuple(self._parsed(listed[:ISSUER_KEYS_MAX]))
        if not keys:
            raise UnusableAnswer(f"{address} has no key of an accepted type")
        return keys

    async def _fetch_metadata(self) -> dict[str, Any]:
        for address in metadata_urls(self.issuer):
            metadata = await self._get(address)
            if metadata is None:
                continue
            # Otherwise one tenant of a shared host could impersonate another (RFC 8414, 3.3).
            if metadata.get("issuer") != self.issuer:
                raise UnusableAnswer(
                    f"{address} is the metadata of {str(metadata.get('issuer'))[:200]!r}; "
                    "set oauth_issuer to exactly that"
                )
            return metadata
        raise UnusableAnswer("there is no metadata at any well-known URL")

    async def _get(self, address: str) -> dict[str, Any] | None:
        """A JSON object, or None if there is nothing at the URL. Redirects are not followed."""
        async with self._client.stream("GET", address, follow_redirects=False) as response:
            if 300 <= response.status_code < 500:
                return None
            if response.status_code != 200:
                raise UnusableAnswer(f"{address} answered {response.status_code}")
            body = bytearray()
            async for piece in response.aiter_raw():  # unpacked, a small answer could be huge
                body += piece
                if len(body) > ISSUER_ANSWER_BYTES_MAX:
                    raise UnusableAnswer(
                        f"{address} is larger than {ISSUER_ANSWER_BYTES_MAX} bytes"
                    )
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
                continue  # for encryption, or of an unknown type
            key_id = jwk.get("kid")
            try:
                public_key = self._jwt.PyJWK(jwk, min(algorithms)).key
            except (self._jwt.PyJWTError, ValueError, TypeError, KeyError):
                _log.warning("cannot read a key of %s: %.100r", self.issuer, key_id)
                continue
            yield VerifyingKey(key_id if isinstance(key_id, str) else None, algorithms, public_key)


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """URLs where an issuer's metadata can be, in the order in which clients try them."""
    url = urlsplit(issuer)
    origin, path = f"{url.scheme}://{url.netloc}", url.path.rstrip("/")
    inserted = tuple(f"{origin}/.well-known/{name}{path}" for name in _METADATA_NAMES)
    if not path:
        return inserted
    return (*inserted, f"{origin}{path}/.well-known/openid-configuration")


def is_protected(url: str, *, may_be_plain: bool = True) -> bool:
    """Whether a URL is https, or http to this machine where `may_be_plain`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    is_plain = parts.scheme == "http" and may_be_plain and is_loopback(host or "")
    return bool(host) and (parts.scheme == "https" or is_plain)


def _algorithms_of(jwk: Any) -> frozenset[str]:
    """Algorithms the key may verify: the one it names, else all of its type."""
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or "d" in jwk:
        return frozenset()
    kind = "RSA" if jwk.get("kty") == "RSA" else jwk.get("crv")
    fitting = _ALGORITHMS.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
    return fitting & {jwk["alg"]} if isinstance(jwk.get("alg"), str) else fitting


def _require_issuer(issuer: str) -> None:
    is_plain = issuer.isascii() and not any(mark in issuer for mark in '?#@" ')
    if not (is_plain and is_protected(issuer)):
        raise ConfigurationError(
            "oauth_issuer must be the https:// URL of an issuer (http:// only on this machine), "
            f"not {issuer!r}."
        )

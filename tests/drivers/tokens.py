"""A server that trusts an issuer, tokens good and forged, and what a refusal of one looks like."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx2 as httpx
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.drivers.authorization_server import Key
from tests.drivers.server import Server
from tests.drivers.urls import refusal

WELL_KNOWN = "/.well-known/oauth-protected-resource"
ALL_SCOPES = "zibaldone:read zibaldone:write zibaldone:delete"


def server_of(issuer: str, folder: Path, **more: Any) -> Server:
    """A server that trusts the issuer and knows the address it will be called by."""
    config = folder / "zibaldone.toml"
    server = Server(folder / "data", environment={"ZIBALDONE_CONFIG": str(config)})
    settings = {"oauth_issuer": issuer, "public_url": server.url, **more}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    config.write_text("\n".join(lines))
    return server


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def challenge_of(answer: httpx.Response) -> dict[str, str]:
    scheme, _, parameters = answer.headers["WWW-Authenticate"].partition(" ")
    assert scheme == "Bearer"
    return dict(re.findall(r'(\w+)="([^"]*)"', parameters))


def invalid(answer: httpx.Response) -> str:
    """Check that a token was refused as the specification wants it; why it was."""
    refusal(answer, 401, "UNAUTHENTICATED")
    challenge = challenge_of(answer)
    assert challenge["error"] == "invalid_token"
    assert challenge["error_description"] == answer.json()["message"]
    assert challenge["resource_metadata"].endswith(WELL_KNOWN)
    return challenge["error_description"]


def call(
    server: Server, token: str, tool: str, arguments: dict[str, Any], path: str = "/mcp"
) -> httpx.Response:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    return server.client.post(path, json=message, headers=bearer(token))


def forged(server: Server, key: Key, algorithm: str = "RS256", **claims: Any) -> str:
    """A token signed by whoever holds the key."""
    now_s = int(time.time())
    usual = {
        "sub": "alice",
        "aud": server.url,
        "iat": now_s,
        "exp": now_s + 600,
        "scope": ALL_SCOPES,
    }
    stated = {name: value for name, value in {**usual, **claims}.items() if value is not None}
    header = {"alg": algorithm, "typ": "at+jwt"}
    return jwt.encode(header, stated, KeySet([key]), algorithms=[algorithm])

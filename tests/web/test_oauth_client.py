"""The official client connects by itself: discovery, registration, consent, tokens, step-up.

Nothing is configured in it but the address of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import CallToolResult
from pydantic import AnyUrl

from tests.drivers.authorization_server import AuthorizationServer
from tests.drivers.server import Server
from tests.drivers.tokens import server_of

CALLBACK = "http://localhost:1/callback"


class Storage:
    """What a client keeps between two runs."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """The user's: it opens the page of the authorization server and is sent back."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self._sent_back_to = ""

    async def open(self, address: str) -> None:
        self.asked.append(parse_qs(urlsplit(address).query))
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(address, follow_redirects=False)
        assert answer.status_code == 302, answer.text
        self._sent_back_to = answer.headers["Location"]
        assert self._sent_back_to.startswith(CALLBACK)

    async def callback(self) -> AuthorizationCodeResult:
        found = {
            name: values[0] for name, values in parse_qs(urlsplit(self._sent_back_to).query).items()
        }
        return AuthorizationCodeResult(
            code=found["code"], state=found["state"], iss=found.get("iss")
        )


@asynccontextmanager
async def connected(
    server: Server, storage: Storage, browser: Browser, path: str, mode: str
) -> AsyncIterator[Client]:
    url = server.url + path
    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="a hosted client",
            redirect_uris=[AnyUrl(CALLBACK)],
            grant_types=["authorization_code"],
            token_endpoint_auth_method="none",
        ),
        storage=storage,
        redirect_handler=browser.open,
        callback_handler=browser.callback,
    )
    async with (
        create_mcp_http_client(auth=provider) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as running:
        yield running


@pytest.fixture
def server(issuer: AuthorizationServer, tmp_path: Path) -> Iterator[Server]:
    with server_of(issuer.issuer, tmp_path) as running:
        yield running


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_signs_in(
    server: Server, issuer: AuthorizationServer, mode: str
) -> None:
    storage, browser = Storage(), Browser()

    async def converse() -> CallToolResult:
        async with connected(server, storage, browser, "/mcp", mode) as client:
            assert len((await client.list_tools()).tools) == 10
            new = {"path": "by/oauth", "content": "signed in"}
            assert not (await client.call_tool("upload_document", new)).is_error
            return await client.call_tool("get_document", {"path": "by/oauth"})

    read = asyncio.run(converse())
    assert not read.is_error
    assert "signed in" in str(read.content)
    [asked] = browser.asked
    assert asked["resource"] == [f"{server.url}/mcp"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["zibaldone:read zibaldone:write zibaldone:delete"]
    assert list(issuer.clients) == [storage.client and storage.client.client_id]
    assert '\\"key\\":\\"oauth:alice\\"' in server.log()


def test_the_official_client_asks_for_a_scope_it_turns_out_to_need(
    server: Server, issuer: AuthorizationServer
) -> None:
    """The user consented to reading only; the first write makes the client ask for more."""
    storage, browser = Storage(), Browser()
    issuer.consent = {"zibaldone:read"}

    async def converse() -> CallToolResult:
        async with connected(server, storage, browser, "/mcp", "auto") as client:
            assert not (await client.call_tool("list_documents", {})).is_error
            issuer.consent = None
            new = {"path": "stepped/up", "content": "x"}
            return await client.call_tool("upload_document", new)

    assert not asyncio.run(converse()).is_error
    assert len(browser.asked) == 2
    assert "zibaldone:write" in browser.asked[1]["scope"][0].split()
    assert storage.tokens is not None
    assert "zibaldone:write" in (storage.tokens.scope or "").split()


def test_a_profile_is_a_resource_of_its_own(server: Server) -> None:
    storage, browser = Storage(), Browser()

    async def converse() -> int:
        async with connected(server, storage, browser, "/mcp-readonly", "auto") as client:
            return len((await client.list_tools()).tools)

    assert asyncio.run(converse()) == 5
    [asked] = browser.asked
    assert asked["resource"] == [f"{server.url}/mcp-readonly"]
    assert asked["scope"] == ["zibaldone:read"]

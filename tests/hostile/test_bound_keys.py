"""A key that is made for a profile, for effects or for a folder is bound to it on every way in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key, key_command
from tests.drivers.mcp import LEGACY, MODERN, Mcp, envelope_of
from tests.drivers.server import Server
from tests.hostile.peers import Peer, call, post_head
from zibaldone.access.key import ApiKey, secret_hash
from zibaldone.access.principal import Tenant
from zibaldone.limits import TOOL_REQUEST_BYTES_MAX, Limits
from zibaldone.tools.built_in import TOOLS
from zibaldone.tools.profiles import built_in
from zibaldone.web.routes import ROUTES, Route

PROFILES = {profile.name: profile for profile in built_in(TOOLS)}
REVOKED_SECONDS = 1.2
"""After this a revoked key is refused (SECURITY.md: within a second)."""
OLD_SECRET = "zib_made-before-prefixes-were-folders"


@dataclass(frozen=True, slots=True)
class Bound:
    server: Server
    keys: dict[str, Key]

    def rest(self, name: str, method: str, url: str, **more: Any) -> httpx.Response:
        return self.server.client.request(method, url, headers=self.keys[name].headers, **more)

    def mcp(self, name: str, path: str = "/mcp") -> Mcp:
        return Mcp(self.server.client, path, headers=self.keys[name].headers)


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bound]:
    data = tmp_path_factory.mktemp("bound") / "data"
    everything = ("--effect", "read", "--effect", "write", "--effect", "delete", "--effect")
    keys = {
        "full": create_key(data, *everything, "admin"),
        "reader": create_key(data, "--effect", "read"),
        "writer": create_key(data, "--effect", "write"),
        "pub": create_key(data, "--prefix", "pub"),
        "old": Key("key_old", OLD_SECRET),
        **{
            f"profile {name}": create_key(data, "--profile", name, *everything, "admin")
            for name in PROFILES
        },
    }
    _add_old_key(data)
    with Server(data) as server:
        bound = Bound(server, keys)
        for path in ("pub", "pub/inside", "pubx/secret", "public"):
            made = bound.rest("full", "POST", "/documents", json={"path": path, "content": "gnu"})
            assert made.status_code == 201
        yield bound


def _add_old_key(data: Path) -> None:
    """As a version stored one that took a prefix for any start of a path."""
    key = ApiKey(
        key_id="key_old",
        secret_hash=secret_hash(OLD_SECRET),
        label="",
        namespace="default",
        path_prefix="pub",
        effects=("read", "write", "delete"),
        profiles=None,
        created_at_us=1,
    )
    store = backend_of(data).open(Limits())
    asyncio.run(store.write(Tenant(), lambda writer: writer.api_keys.add(key)))
    store.close()


def _called(route: Route) -> tuple[str, str, dict[str, Any]]:
    url = route.path.format(path="nowhere", revision=1, job_id="none")
    return route.method, url, {} if route.is_text else {"json": {}}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.tool], ids=lambda route: route.method + route.path
)
def test_over_rest_a_profile_opens_its_tools_only(bound: Bound, profile: str, route: Route) -> None:
    method, url, more = _called(route)
    answer = bound.rest(f"profile {profile}", method, url, **more)
    tools = {route.tool}
    if route.path == "/documents/{path}" and method == "GET":
        tools = {"get_document_for_rewrite"}
    if tools <= set(PROFILES[profile].tools):
        assert answer.status_code != 403, answer.text
    else:
        assert answer.status_code == 403, answer.text
        assert answer.json()["code"] == "FORBIDDEN"


def test_a_key_for_the_read_only_profile_changes_nothing_over_rest(bound: Bound) -> None:
    key = "profile readonly"
    new = {"path": "pub/new", "content": "x"}
    assert bound.rest(key, "POST", "/documents", json=new).status_code == 403
    assert bound.rest(key, "DELETE", "/documents/pub/inside").status_code == 403
    assert bound.rest(key, "GET", "/documents/pub/inside").json()["content"] == "gnu"
    assert bound.rest("full", "GET", "/documents/pub/new").status_code == 404


def test_resources_are_the_tools_that_read_them(bound: Bound) -> None:
    """A profile without the tools that list and read documents does not read them as resources."""
    rag = bound.mcp("profile rag", "/mcp-rag")
    for method, params in (
        ("resources/list", {}),
        ("resources/read", {"uri": "zibaldone:///pub/inside"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "path", "value": ""}},
        ),
    ):
        refusal = rag.error(method, params)
        assert refusal["data"]["code"] == "FORBIDDEN"
    readonly = bound.mcp("profile readonly", "/mcp-readonly")
    assert readonly.result("resources/list", {})["resources"]


COMPLETIONS = [
    {"ref": reference, "argument": {"name": name, "value": "pub"}}
    for reference in (
        {"type": "ref/resource", "uri": "zibaldone:///{+path}"},
        {"type": "ref/prompt", "name": "keep_note"},
    )
    for name in ("path", "prefix", "topic")
]


@pytest.mark.parametrize("version", [None, LEGACY[-1], MODERN])
def test_resources_need_the_right_to_read(bound: Bound, version: str | None) -> None:
    """What lists, reads or completes paths of documents is no way around a missing right."""
    writer = replace(bound.mcp("writer"), version=version)
    reader = replace(bound.mcp("reader"), version=version)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("resources/list", {}),
        ("resources/read", {"uri": "zibaldone:///pub/inside"}),
        ("resources/read", {"uri": "zibaldone:///not/there"}),
        *(("completion/complete", params) for params in COMPLETIONS),
    ]
    for method, params in requests:
        answer = writer.rpc(method, params)
        assert envelope_of(answer)["error"]["data"]["code"] == "FORBIDDEN", (method, params)
        assert "pub/inside" not in answer.text
    names = [one["name"] for one in reader.result("resources/list")["resources"]]
    assert "pub/inside" in names
    (content,) = reader.result("resources/read", {"uri": "zibaldone:///pub/inside"})["contents"]
    assert content["text"] == "gnu"
    completion = reader.result("completion/complete", COMPLETIONS[0])["completion"]
    assert "pub/inside" in completion["values"]


@pytest.mark.parametrize(
    ("name", "method", "url", "given"),
    [
        ("reader", "POST", "/documents", {"path": "pub/x", "content": "x"}),
        ("reader", "DELETE", "/documents/pub/inside", None),
        ("reader", "POST", "/kb/cleanup-orphans", {}),
        ("writer", "GET", "/documents/pub/inside", None),
        ("writer", "GET", "/documents", None),
        ("writer", "DELETE", "/documents/pub/inside", None),
    ],
)
def test_effects_bind_over_rest(
    bound: Bound, name: str, method: str, url: str, given: dict[str, str] | None
) -> None:
    answer = bound.rest(name, method, url, json=given)
    assert answer.status_code == 403


@pytest.mark.parametrize("sent_before", [0, 10], ids=["head", "half"])
@pytest.mark.parametrize("path", ["/documents", "/mcp", "/mcp-gpt"])
def test_a_body_that_ends_after_its_key_was_revoked_is_refused(
    bound: Bound, path: str, sent_before: int
) -> None:
    """The key was good when the request began; what counts is when there is something to run."""
    key = create_key(bound.server.data)
    mcp = Mcp(bound.server.client, headers=key.headers)
    until_s = time.monotonic() + 20
    while mcp.rpc("ping").status_code != 200:
        assert time.monotonic() < until_s, "the new key was never accepted"
    new = {"path": f"late/{key.key_id}", "content": "x"}
    body = json.dumps(new).encode() if path == "/documents" else call("upload_document", new)
    headers = (f"x-api-key: {key.secret}", "content-type: application/json", "accept: */*")
    with Peer(bound.server) as peer:
        peer.send(post_head(path, len(body), *headers) + body[:sent_before])
        time.sleep(0.2)  # the server has read the head
        key_command(bound.server.data, "revoke", key.key_id)
        time.sleep(REVOKED_SECONDS)
        peer.send(body[sent_before:])
        peer.answer().refused(401, "UNAUTHENTICATED")
    assert bound.rest("full", "GET", f"/documents/late/{key.key_id}").status_code == 404


@pytest.mark.parametrize("name", ["pub", "old"])
class TestFolders:
    def test_a_prefix_is_a_folder(self, bound: Bound, name: str) -> None:
        listed = bound.rest(name, "GET", "/documents").json()["items"]
        assert [item["document_id"] for item in listed] == ["pub/inside"]
        for path in ("pub", "pubx/secret", "public"):
            assert bound.rest(name, "GET", f"/documents/{path}").status_code == 404
            new = {"path": path, "content": "x", "upsert": True}
            assert bound.rest(name, "POST", "/documents", json=new).status_code == 403
            assert bound.rest(name, "DELETE", f"/documents/{path}").status_code in (403, 404)
        assert bound.rest("full", "GET", "/documents/public").json()["content"] == "gnu"

    def test_over_mcp_too(self, bound: Bound, name: str) -> None:
        hits = bound.mcp(name).call("search_knowledge", query="gnu")["results"]
        assert [hit["document_id"] for hit in hits] == ["pub/inside"]

    def test_the_list_of_keys_says_so(self, bound: Bound, name: str) -> None:
        keys = json.loads(key_command(bound.server.data, "list", "--json").output)["keys"]
        assert {key["key_id"]: key["prefix"] for key in keys}[bound.keys[name].key_id] == "pub/"


@pytest.mark.parametrize("url", ["/search", "/mcp"])
@pytest.mark.parametrize("is_announced", [True, False])
def test_who_may_not_write_has_no_megabytes_to_send(
    bound: Bound, url: str, is_announced: bool
) -> None:
    """Parsing what only a writer needs to send would hold up others."""
    body = b'{"query":"%s"}' % (b"x" * TOOL_REQUEST_BYTES_MAX)
    content = body if is_announced else iter([body])
    answer = bound.rest("reader", "POST", url, content=content)
    assert answer.status_code == 413, answer.text
    assert answer.json()["details"] == {"bytes_max": TOOL_REQUEST_BYTES_MAX}
    given = {"path": "long", "content": "x" * TOOL_REQUEST_BYTES_MAX}
    assert bound.rest("writer", "POST", "/documents", json=given).status_code in (201, 409)

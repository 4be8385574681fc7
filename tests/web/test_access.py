"""Who may call: keys and what each of them opens, refusals, the address that carries a token."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key, key_command
from tests.drivers.mcp import BOTH, JSON, JSON_TYPE, PATHS, SSE, Mcp, envelope_of
from tests.drivers.server import Server, parsed, run_cli
from zibaldone.errors import InvalidArgument, NotFound

LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
NEW_KEY_SECONDS_MAX = 20
REVOKED_SECONDS_MAX = 1.5
"""SECURITY.md promises a second."""


@dataclass(frozen=True, slots=True)
class Keys:
    full: Key
    other_tenant: Key
    reader: Key
    team: Key
    gpt: Key
    expired: Key


@dataclass(frozen=True, slots=True)
class Closed:
    server: Server
    keys: Keys

    def mcp(self, key: Key, path: str = "/mcp") -> Mcp:
        return Mcp(self.server.client, path, headers=key.headers)

    def rest(self, key: Key, method: str, url: str, **more: Any) -> httpx.Response:
        return self.server.client.request(method, url, headers=key.headers, **more)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    data = tmp_path_factory.mktemp("access") / "data"
    keys = Keys(
        full=create_key(data, "--label", "everything"),
        other_tenant=create_key(data, "--namespace", "tenant-b"),
        reader=create_key(data, "--effect", "read"),
        team=create_key(data, "--prefix", "team/"),
        gpt=create_key(data, "--profile", "gpt"),
        expired=create_key(data, "--expires", "2020-01-01T00:00:00Z"),
    )
    with Server(data) as server:
        yield Closed(server, keys)


def is_plain_401(answer: httpx.Response) -> bool:
    assert answer.status_code == 401, answer.text
    assert answer.headers["content-type"] == JSON_TYPE
    assert answer.headers["www-authenticate"].startswith("Bearer")
    body = answer.json()
    assert body["code"] == "UNAUTHENTICATED"
    assert "jsonrpc" not in body
    return True


class TestRefusals:
    @pytest.mark.requirement("001/E.01", "001/R3")
    @pytest.mark.parametrize("path", [path + slash for path in PATHS for slash in ("", "/")])
    @pytest.mark.parametrize("accept", [JSON, SSE, BOTH, "application/xml"])
    @pytest.mark.parametrize("body", [LIST, b"{", b"", b"\xff" * 100])
    def test_without_a_key_it_is_401_before_anything_is_parsed(
        self, closed: Closed, path: str, accept: str, body: bytes
    ) -> None:
        assert is_plain_401(Mcp(closed.server.client, path).post(body, accept=accept))

    @pytest.mark.requirement("001/E.01", "001/R3")
    @pytest.mark.parametrize(
        "headers",
        [
            {"x-api-key": "wrong"},
            {"x-api-key": "zib_" + "A" * 43},
            {"authorization": "Bearer wrong"},
            {"authorization": "Bearer"},
            {"authorization": "Basic d3Jvbmc6d3Jvbmc="},
            {"x-api-key": ""},
            {"x-api-key": "x" * 5_000},
        ],
    )
    @pytest.mark.parametrize("path", PATHS)
    def test_with_a_wrong_key_too(self, closed: Closed, path: str, headers: dict[str, str]) -> None:
        mcp = Mcp(closed.server.client, path, headers=headers)
        assert is_plain_401(mcp.post(LIST, accept=SSE))

    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
    def test_for_every_method(self, closed: Closed, method: str) -> None:
        assert is_plain_401(closed.server.client.request(method, "/mcp"))

    @pytest.mark.parametrize(
        "url", ["/documents", "/documents/a", "/documents/a/move", "/search?query=x"]
    )
    def test_for_rest(self, closed: Closed, url: str) -> None:
        for method in ("GET", "POST"):
            assert is_plain_401(closed.server.client.request(method, url))

    def test_for_metrics(self, closed: Closed) -> None:
        assert is_plain_401(closed.server.client.get("/metrics"))

    def test_health_is_open(self, closed: Closed) -> None:
        assert closed.server.client.get("/health").status_code == 200

    def test_an_expired_key_is_refused(self, closed: Closed) -> None:
        assert is_plain_401(closed.mcp(closed.keys.expired).post(LIST))


class TestKeys:
    def test_both_headers_are_taken(self, closed: Closed) -> None:
        secret = closed.keys.full.secret
        for headers in (
            {"x-api-key": secret},
            {"authorization": f"Bearer {secret}"},
            {"authorization": f"bearer   {secret}"},
        ):
            assert len(Mcp(closed.server.client, headers=headers).tools()) == 10

    def test_the_secret_is_shown_once_and_stored_nowhere(self, closed: Closed) -> None:
        listed = key_command(closed.server.data, "list", "--json").output
        secrets = [key.secret for key in _all(closed.keys)]
        assert not any(secret in listed for secret in secrets)
        stored = backend_of(closed.server.data).everything()
        assert closed.keys.full.key_id.encode() in stored
        assert not any(secret.encode() in stored for secret in secrets)

    def test_the_list_says_what_each_may(self, closed: Closed) -> None:
        listed = json.loads(key_command(closed.server.data, "list", "--json").output)
        by_id = {key["key_id"]: key for key in listed["keys"]}
        keys = closed.keys
        assert by_id[keys.full.key_id]["label"] == "everything"
        assert by_id[keys.other_tenant.key_id]["namespace"] == "tenant-b"
        assert by_id[keys.reader.key_id]["effects"] == ["read"]
        assert by_id[keys.team.key_id]["prefix"] == "team/"
        assert by_id[keys.gpt.key_id]["profiles"] == ["gpt"]
        assert by_id[keys.expired.key_id]["state"] == "expired"
        assert by_id[keys.full.key_id]["state"] == "valid"
        plain = key_command(closed.server.data, "list").output
        assert all(key.key_id in plain for key in _all(keys))

    @pytest.mark.parametrize(
        "options",
        [
            ("--profile", "nope"),
            ("--expires", "soon"),
            ("--namespace", "a/b"),
            ("--prefix", "a\nb"),
        ],
    )
    def test_a_key_that_makes_no_sense_is_not_made(
        self, tmp_path: Path, options: tuple[str, str]
    ) -> None:
        Commands(tmp_path / "data").ok("put", "any", stdin="x")
        with pytest.raises(InvalidArgument):
            key_command(tmp_path / "data", "create", *options)
        assert key_command(tmp_path / "data", "list").output.startswith("There are no keys")

    def test_a_revoked_key_is_refused_by_a_running_server(self, closed: Closed) -> None:
        made = parsed(run_cli("key", "create", "--json", data=closed.server.data))
        key = Key(made["key_id"], made["secret"])
        wait_until_accepted(closed.mcp(key))
        assert run_cli("key", "revoke", key.key_id, data=closed.server.data).returncode == 0
        wait_until_refused(closed.mcp(key))
        with pytest.raises(NotFound):
            key_command(closed.server.data, "revoke", key.key_id)
        assert len(closed.mcp(closed.keys.full).tools()) == 10

    def test_it_is_refused_within_the_second_that_is_promised(self, closed: Closed) -> None:
        """A key is accepted for the first time when the server has just read the keys: one that is
        revoked then is accepted for as long as any can be."""
        key = create_key(closed.server.data)
        wait_until_accepted(closed.mcp(key))
        key_command(closed.server.data, "revoke", key.key_id)
        wait_until_refused(closed.mcp(key))

    def test_when_all_keys_are_revoked_the_server_stays_closed(self, data: Path) -> None:
        first, second = create_key(data), create_key(data, "--namespace", "other")
        with Server(data) as server:
            for key in (first, second):
                wait_until_accepted(Mcp(server.client, headers=key.headers))
            for key in (first, second):
                key_command(data, "revoke", key.key_id)
                wait_until_refused(Mcp(server.client, headers=key.headers))
            assert_closed(server, first)
            server.stop()
            server.start()
            assert_closed(server, first)


def wait_until_accepted(mcp: Mcp) -> None:
    until_s = time.monotonic() + NEW_KEY_SECONDS_MAX
    while mcp.post(LIST).status_code != 200:
        assert time.monotonic() < until_s, "the new key was never accepted"


def wait_until_refused(mcp: Mcp) -> None:
    """The key was revoked a moment ago. When a request is sent counts, not when it is answered."""
    until_s = time.monotonic() + REVOKED_SECONDS_MAX
    sent_s = time.monotonic()
    while mcp.post(LIST).status_code != 401:
        assert sent_s < until_s, "the revoked key is still accepted"
        sent_s = time.monotonic()


def assert_closed(server: Server, revoked: Key) -> None:
    for headers in ({}, revoked.headers):
        for path in PATHS:
            assert is_plain_401(Mcp(server.client, path, headers=headers).post(LIST))
        assert is_plain_401(server.client.get("/documents", headers=headers))
        services = server.client.get("/health", headers=headers).json()["services"]
        assert all(members.keys() <= {"status", "code"} for members in services.values())
    capability = Mcp(server.client, f"/gpt-mcp/{revoked.secret}/mcp")
    assert is_plain_401(capability.post(LIST))


class TestTenants:
    def test_one_does_not_see_another_over_mcp(self, closed: Closed) -> None:
        ours, theirs = closed.mcp(closed.keys.full), closed.mcp(closed.keys.other_tenant)
        ours.call("upload_document", path="tenants/secret", content="the zebra plan")
        assert theirs.call("list_documents", prefix="tenants/")["items"] == []
        assert theirs.call("search_knowledge", query="zebra")["results"] == []
        assert "error" in theirs.call("get_document", path="tenants/secret")
        assert theirs.call("batch_read", paths=["tenants/secret"])["items"][0]["status"] == "error"
        for tool, arguments in (
            ("get_document_for_rewrite", {}),
            ("update_document", {"content": "x"}),
            ("patch_document", {"old_str": "zebra", "new_str": "x"}),
            ("delete_document", {}),
        ):
            assert theirs.failure(tool, path="tenants/secret", **arguments)["code"] == "NOT_FOUND"
        uri = "zibaldone:///tenants/secret"
        assert theirs.result("resources/list")["resources"] == []
        assert theirs.error("resources/read", {"uri": uri})["code"] == -32002
        completion = {
            "ref": {"type": "ref/resource", "uri": uri},
            "argument": {"name": "path", "value": "ten"},
        }
        assert theirs.result("completion/complete", completion)["completion"]["values"] == []
        theirs.call("upload_document", path="tenants/secret", content="another")
        assert ours.call("get_document", path="tenants/secret")["content"] == "the zebra plan"

    def test_nor_over_rest(self, closed: Closed) -> None:
        keys = closed.keys
        document = {"path": "tenants/rest", "content": "the yak plan"}
        assert closed.rest(keys.full, "POST", "/documents", json=document).status_code == 201
        for url in ("/documents/tenants/rest", "/documents/tenants/rest/revisions"):
            assert closed.rest(keys.full, "GET", url).status_code == 200
            assert closed.rest(keys.other_tenant, "GET", url).status_code == 404
        refused = closed.rest(keys.other_tenant, "DELETE", "/documents/tenants/rest")
        assert refused.status_code == 404
        found = closed.rest(keys.other_tenant, "GET", "/search?query=yak").json()
        assert found["results"] == []


class TestRights:
    def test_a_prefix_bounds_what_is_seen_and_written(self, closed: Closed) -> None:
        whole, team = closed.mcp(closed.keys.full), closed.mcp(closed.keys.team)
        for path in ("team/a", "teamwork/a", "elsewhere/a"):
            whole.call("upload_document", path=path, content="the okapi plan")
        listed = team.call("list_documents")["items"]
        assert [item["document_id"] for item in listed] == ["team/a"]
        hits = team.call("search_knowledge", query="okapi")["results"]
        assert [hit["document_id"] for hit in hits] == ["team/a"]
        assert "error" in team.call("get_document", path="teamwork/a")
        refused = team.failure("upload_document", path="elsewhere/b", content="x")
        assert (refused["code"], refused["status"]) == ("FORBIDDEN", 403)
        assert refused["details"]["allowed_prefix"] == "team/"
        assert team.failure("delete_document", path="teamwork/a")["code"] == "FORBIDDEN"
        assert team.call("upload_document", path="team/b", content="x")["status"] == "created"

    def test_a_reader_may_only_read(self, closed: Closed) -> None:
        closed.mcp(closed.keys.full).call("upload_document", path="rights/a", content="x")
        reader = closed.mcp(closed.keys.reader)
        assert reader.call("get_document", path="rights/a")["content"] == "x"
        for tool, arguments in (
            ("upload_document", {"path": "rights/b", "content": "x"}),
            ("update_document", {"path": "rights/a", "content": "y"}),
            ("patch_document", {"path": "rights/a", "old_str": "x", "new_str": "y"}),
            ("delete_document", {"path": "rights/a"}),
            ("ingest_document", {"path": "rights/b", "text": "x"}),
        ):
            assert reader.failure(tool, **arguments)["code"] == "FORBIDDEN"
        refused = closed.rest(closed.keys.reader, "DELETE", "/documents/rights/a")
        assert refused.status_code == 403
        assert reader.call("get_document", path="rights/a")["content"] == "x"

    def test_a_profile_bounds_where_a_key_is_good(self, closed: Closed) -> None:
        assert len(closed.mcp(closed.keys.gpt, "/mcp-gpt").tools()) == 8
        for path in ("/mcp", "/mcp-readonly", "/mcp-gpt-full", "/mcp-all"):
            answer = closed.mcp(closed.keys.gpt, path).post(LIST, accept=SSE)
            assert answer.status_code == 403
            assert answer.json()["code"] == "FORBIDDEN"


class TestCapabilityRoute:
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_the_token_in_the_address_opens_the_gpt_profile(
        self, closed: Closed, slash: str
    ) -> None:
        path = f"/gpt-mcp/{closed.keys.full.secret}/mcp{slash}"
        mcp = Mcp(closed.server.client, path)
        assert len(mcp.tools()) == 8
        assert "items" in mcp.call("list_documents")
        assert mcp.error("tools/call", {"name": "delete_document"})["code"] == -32601
        assert closed.server.client.get(path).json()["profile"] == "gpt"
        answer = mcp.post(LIST, accept=SSE)
        assert envelope_of(answer)["result"]["tools"]

    @pytest.mark.parametrize("token", ["wrong", "zib_" + "A" * 43, "%20", "..", "a b"])
    def test_a_wrong_token_is_401(self, closed: Closed, token: str) -> None:
        answer = Mcp(closed.server.client, f"/gpt-mcp/{token}/mcp").post(LIST, accept=SSE)
        if answer.status_code != 404:  # the client itself resolves `..`
            assert is_plain_401(answer)
            assert token not in answer.text

    def test_a_right_key_beside_a_wrong_token_does_not_help(self, closed: Closed) -> None:
        mcp = Mcp(closed.server.client, "/gpt-mcp/wrong/mcp", headers=closed.keys.full.headers)
        assert is_plain_401(mcp.post(LIST))

    def test_other_words_lead_nowhere(self, closed: Closed) -> None:
        secret = closed.keys.full.secret
        for path in (f"/other/{secret}/mcp", f"/gpt-mcp/{secret}", f"/gpt-mcp/{secret}/x"):
            answer = Mcp(closed.server.client, path).post(LIST)
            assert answer.status_code == 404
            assert secret not in answer.text

    def test_no_token_is_right_while_there_are_no_keys(self, server: Server) -> None:
        assert len(Mcp(server.client).tools()) == 10
        assert is_plain_401(Mcp(server.client, "/gpt-mcp/anything/mcp").post(LIST))

    def test_the_token_is_in_no_log_line(self, closed: Closed) -> None:
        log = closed.server.log()
        assert re.search(r"Uvicorn running", log)
        assert not [key for key in _all(closed.keys) if key.secret in log]


def _all(keys: Keys) -> list[Key]:
    return [keys.full, keys.other_tenant, keys.reader, keys.team, keys.gpt, keys.expired]

"""What upkeep shows to an admin key: the whole file is counted, only the key's own is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2 as httpx
import pytest

from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED, wait_until_indexed
from tests.drivers.server import Server


@dataclass(frozen=True, slots=True)
class Tenants:
    server: Server
    one: Key
    other: Key
    folder: Key
    """The other's, for one folder only."""

    def get(self, key: Key, url: str) -> httpx.Response:
        answer = self.server.client.get(url, headers=key.headers)
        assert answer.status_code == 200, answer.text
        return answer


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """Each has a source of its own, and documents that lost their vectors."""
    data = tmp_path_factory.mktemp("upkeep") / "data"
    rights = ("--effect", "read", "--effect", "write", "--effect", "admin")
    keys = [
        create_key(data, "--namespace", "one", *rights),
        create_key(data, "--namespace", "other", *rights),
        create_key(data, "--namespace", "other", "--prefix", "open/", *rights),
    ]
    with Server(data, environment=HASHED) as server:
        tenants = Tenants(server, *keys)
        for key, path in ((keys[0], "merger"), (keys[1], "open/a"), (keys[1], "closed/b")):
            given = {"path": path, "content": f"text of {path}"}
            server.client.post("/documents", json=given, headers=key.headers).raise_for_status()
        server.client.headers["x-api-key"] = keys[0].secret
        wait_until_indexed(server)
        tables = backend_of(data)
        tables.execute("DELETE FROM vectors")
        tables.execute(
            "INSERT INTO sources (namespace, name, kind, enabled, created_at_us) VALUES"
            " ('one', 'posts of one', 'database', 1, 0),"
            " ('other', 'posts of other', 'database', 1, 0)"
        )
        yield tenants


def test_only_documents_of_the_caller_are_named(tenants: Tenants) -> None:
    named = {
        name: tenants.get(key, "/kb/audit-sync").json()["ghost_documents"]
        for name, key in (("one", tenants.one), ("other", tenants.other), ("f", tenants.folder))
    }
    assert {name: sorted(found) for name, found in named.items()} == {
        "one": ["merger"], "other": ["closed/b", "open/a"], "f": ["open/a"],
    }  # fmt: skip


def test_sources_of_others_are_not_shown(tenants: Tenants) -> None:
    for key, own, docs in (
        (tenants.one, "posts of one", 1), (tenants.other, "posts of other", 2),
        (tenants.folder, "posts of other", 1),
    ):  # fmt: skip
        shown = Mcp(tenants.server.client, "/mcp-rag", headers=key.headers).call("rag.admin.stats")
        assert [source["source_name"] for source in shown["sources"]] == ["kb", own]
        assert [source["docs"] for source in shown["sources"]] == [docs, 0]
        assert [source["chunks"] for source in shown["sources"]] == [docs, 0]


def test_the_file_as_a_whole_is_counted(tenants: Tenants) -> None:
    """The right to admin is the operator's (SECURITY.md)."""
    found = tenants.get(tenants.folder, "/kb/audit-sync").json()
    assert found["ghosts"] == 3
    assert found["consistent"] is False


def test_nothing_else_of_upkeep_names_a_document(tenants: Tenants) -> None:
    for url, body in (
        ("/kb/cleanup-orphans", {"dry_run": True}),
        ("/kb/cleanup-orphans", {"dry_run": False}),
        ("/kb/reindex-missing", {}),
    ):
        answer = tenants.server.client.post(url, json=body, headers=tenants.folder.headers)
        assert answer.status_code == 200, answer.text
        assert all(type(value) in (int, bool) for value in answer.json().values()), answer.text

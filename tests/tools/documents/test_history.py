"""The way a document came, what changed, and the way back."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


def revisions(client: httpx.Client, document_id: str, **params: Any) -> dict[str, Any]:
    answer = client.get(at(document_id, "/revisions"), params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


@pytest.fixture(scope="module")
def storied(shared_server: Server) -> str:
    """A document that was created, updated, patched, deleted and restored."""
    client, document_id = shared_server.client, "history/storied"
    shared_server.create(document_id, "one\ntwo\n", title="First", tags=["a"], metadata={"n": 1})
    client.put(at(document_id), json={"content": "one\n2\n", "title": "Second"})
    client.patch(at(document_id), json={"old_str": "one", "new_str": "1"})
    client.put(at(document_id), json={"tags": ["b"], "metadata": {"n": None, "m": 2}})
    client.delete(at(document_id)).raise_for_status()
    client.post(at(document_id, "/revisions/1/restore")).raise_for_status()
    return document_id


def test_lists_every_revision_newest_first(client: httpx.Client, storied: str) -> None:
    page = revisions(client, storied)
    assert page["document_id"] == storied
    assert page["next_before"] is None
    assert [(one["revision"], one["operation"]) for one in page["revisions"]] == [
        (6, "restore"),
        (5, "delete"),
        (4, "update"),
        (3, "patch"),
        (2, "update"),
        (1, "create"),
    ]
    newest = page["revisions"][0]
    assert set(newest) == {
        "revision",
        "operation",
        "written_at",
        "written_by",
        "title",
        "content_length",
    }
    written = [one["written_at"] for one in page["revisions"]]
    assert written == sorted(written, reverse=True)
    assert len(set(written)) == len(written)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
def test_pages_hold_each_revision_once(client: httpx.Client, storied: str, limit: int) -> None:
    seen: list[int] = []
    before: dict[str, int] = {}
    while True:
        page = revisions(client, storied, limit=limit, **before)
        assert len(page["revisions"]) <= limit
        seen += [one["revision"] for one in page["revisions"]]
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    assert seen == [6, 5, 4, 3, 2, 1]


def test_reads_each_state_whole(client: httpx.Client, storied: str) -> None:
    states = {
        number: client.get(at(storied, f"/revisions/{number}")).json() for number in range(1, 7)
    }
    assert {number: state["content"] for number, state in states.items()} == {
        1: "one\ntwo\n",
        2: "one\n2\n",
        3: "1\n2\n",
        4: "1\n2\n",
        5: "1\n2\n",
        6: "one\ntwo\n",
    }
    assert [states[number]["title"] for number in (1, 2, 6)] == ["First", "Second", "First"]
    assert [states[number]["tags"] for number in (3, 4, 6)] == [["a"], ["b"], ["a"]]
    assert [states[number]["metadata"] for number in (3, 4, 6)] == [{"n": 1}, {"m": 2}, {"n": 1}]


def test_shows_what_changed(client: httpx.Client, storied: str) -> None:
    answer = client.get(at(storied, "/revisions/diff"), params={"older": 1, "newer": 3})
    assert answer.json() == {
        "document_id": storied,
        "older": 1,
        "newer": 3,
        "diff": f"--- {storied}@1\n+++ {storied}@3\n@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2",
        "truncated": False,
    }
    same = client.get(at(storied, "/revisions/diff"), params={"older": 3, "newer": 4}).json()
    assert same["diff"] == ""


def test_a_difference_also_goes_backwards(client: httpx.Client, storied: str) -> None:
    answer = client.get(at(storied, "/revisions/diff"), params={"older": 3, "newer": 1}).json()
    assert "-1\n-2\n+one\n+two" in answer["diff"]


class TestRestore:
    def test_makes_an_old_state_the_newest(self, shared_server: Server) -> None:
        client, document_id = shared_server.client, "restore/live"
        shared_server.create(document_id, "first wombat", title="T1", tags=["a"], mime="text/plain")
        client.put(
            at(document_id),
            json={"content": "second", "title": "T2", "tags": [], "mime": "text/html"},
        ).raise_for_status()
        answer = client.post(at(document_id, "/revisions/1/restore"))
        assert answer.status_code == 200
        assert answer.json() == {
            "id": document_id,
            "status": "restored",
            "revision": 3,
            "restored_from": 1,
        }
        document = client.get(at(document_id)).json()
        assert document["content"] == "first wombat"
        assert (document["title"], document["tags"]) == ("T1", ["a"])
        assert document["mime"] == "text/plain"
        assert client.get(at(document_id, "/revisions/2")).json()["content"] == "second"

    def test_brings_back_a_deleted_document(self, shared_server: Server) -> None:
        client, document_id = shared_server.client, "restore/deleted"
        shared_server.create(document_id, "numbat facts")
        client.delete(at(document_id)).raise_for_status()
        assert revisions(client, document_id)["revisions"][0]["operation"] == "delete"
        client.post(at(document_id, "/revisions/1/restore")).raise_for_status()
        assert client.get(at(document_id)).json()["content"] == "numbat facts"
        listed = client.get("/documents", params={"prefix": document_id}).json()
        assert [(one["document_id"], one["revision"]) for one in listed["items"]] == [
            (document_id, 3)
        ]
        found = client.get("/search", params={"query": "numbat"}).json()["results"]
        assert [hit["document_id"] for hit in found] == [document_id]

    def test_is_itself_undone_by_a_restore(self, shared_server: Server) -> None:
        client, document_id = shared_server.client, "restore/twice"
        shared_server.create(document_id, "first")
        client.put(at(document_id), json={"content": "second"}).raise_for_status()
        client.post(at(document_id, "/revisions/1/restore")).raise_for_status()
        client.post(at(document_id, "/revisions/2/restore")).raise_for_status()
        document = client.get(at(document_id)).json()
        assert (document["content"], document["revision"]) == ("second", 4)

    def test_the_right_last_known_revision_is_let_through(self, shared_server: Server) -> None:
        shared_server.create("restore/known", "first")
        answer = shared_server.client.post(
            at("restore/known", "/revisions/1/restore"), json={"last_known_revision": 1}
        )
        assert answer.json()["revision"] == 2


class TestNothingThere:
    @pytest.mark.parametrize(
        "tail",
        ["/revisions", "/revisions/1", "/revisions/diff?older=1&newer=1"],
    )
    def test_an_unknown_document_has_no_history(self, client: httpx.Client, tail: str) -> None:
        refusal(client.get(at("history/never", tail)), 404, "NOT_FOUND")

    def test_an_unknown_document_is_not_restored(self, client: httpx.Client) -> None:
        answer = client.post(at("history/never", "/revisions/1/restore"))
        refusal(answer, 404, "NOT_FOUND")

    @pytest.mark.parametrize("number", ["0", "7", "007", str(2**53 - 1)])
    def test_an_unknown_revision(self, client: httpx.Client, storied: str, number: str) -> None:
        details = refusal(client.get(at(storied, f"/revisions/{number}")), 404, "NOT_FOUND")
        assert details == {"document_id": storied, "revision": int(number), "newest": 6}
        refusal(client.post(at(storied, f"/revisions/{number}/restore")), 404, "NOT_FOUND")

    @pytest.mark.parametrize("number", [str(2**53), "9" * 30, "9" * 5000])
    def test_a_revision_that_no_document_can_have(
        self, client: httpx.Client, storied: str, number: str
    ) -> None:
        for answer in (
            client.get(at(storied, f"/revisions/{number}")),
            client.post(at(storied, f"/revisions/{number}/restore")),
        ):
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "revision"

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({}, "older"),
            ({"older": 1}, "newer"),
            ({"older": "x", "newer": 1}, "older"),
            ({"older": 1, "newer": -1}, "newer"),
        ],
    )
    def test_a_difference_needs_two_numbers(
        self, client: httpx.Client, storied: str, params: dict[str, Any], field: str
    ) -> None:
        answer = client.get(at(storied, "/revisions/diff"), params=params)
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    @pytest.mark.parametrize("limit", [0, 101, -1])
    def test_a_wrong_limit(self, client: httpx.Client, storied: str, limit: int) -> None:
        answer = client.get(at(storied, "/revisions"), params={"limit": limit})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "limit"

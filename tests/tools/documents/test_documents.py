"""Create, update and delete over REST, against a server process."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


def read(client: httpx.Client, document_id: str) -> dict[str, Any]:
    answer = client.get(at(document_id))
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


class TestCreate:
    def test_answers_with_id_status_and_revision(self, client: httpx.Client) -> None:
        answer = client.post("/documents", json={"path": "create/a", "content": "text"})
        assert answer.status_code == 201
        assert answer.json() == {"id": "create/a", "status": "created", "revision": 1}

    def test_everything_given_is_kept(self, client: httpx.Client) -> None:
        given = {
            "path": "create/all",
            "content": "# Heading\n\nlast line without end",
            "title": "A title",
            "tags": ["one", "two"],
            "metadata": {"n": 1, "deep": {"list": [1, 2.5, None, True]}, "größe": "ß"},
            "mime": "text/plain",
            "parent_id": "elsewhere",
        }
        client.post("/documents", json=given).raise_for_status()
        document = read(client, "create/all")
        assert document["document_id"] == given["path"]
        assert document["content_length"] == len(given["content"])
        for name in ("content", "title", "tags", "metadata", "mime", "parent_id"):
            assert document[name] == given[name]
        assert document["revision"] == 1
        assert document["created_at"] == document["updated_at"]

    def test_what_is_not_given_has_a_default(self, shared_server: Server) -> None:
        shared_server.create("create/folder/bare", "")
        document = read(shared_server.client, "create/folder/bare")
        assert document["title"] == ""
        assert document["tags"] == []
        assert document["metadata"] == {}
        assert document["mime"] == "text/markdown"
        assert document["parent_id"] == "create/folder"

    def test_an_id_without_a_folder_has_no_parent(self, shared_server: Server) -> None:
        shared_server.create("create-top")
        assert read(shared_server.client, "create-top")["parent_id"] is None

    @pytest.mark.parametrize("content", ["", "\n", "\r\n\ttext \u2028 \ufeff end ", "😀" * 600])
    def test_the_body_is_kept_character_for_character(
        self, client: httpx.Client, content: str
    ) -> None:
        given = {"path": "create/exact", "content": content, "upsert": True}
        client.post("/documents", json=given).raise_for_status()
        assert read(client, "create/exact")["content"] == content

    def test_a_live_id_is_a_conflict_and_stays(self, shared_server: Server) -> None:
        shared_server.create("create/taken", "first")
        answer = shared_server.client.post(
            "/documents", json={"path": "create/taken", "content": "second"}
        )
        details = refusal(answer, 409, "CONFLICT")
        assert details == {"document_id": "create/taken", "revision": 1}
        assert read(shared_server.client, "create/taken")["content"] == "first"

    def test_upsert_overwrites_and_keeps_what_is_not_given(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create(
            "create/upsert",
            "first",
            title="Title",
            tags=["tag"],
            mime="text/plain",
            parent_id="elsewhere",
            metadata={"kept": 1, "gone": 2},
        )
        answer = client.post(
            "/documents",
            json={
                "path": "create/upsert",
                "content": "second",
                "upsert": True,
                "metadata": {"gone": None, "new": 3},
            },
        )
        assert answer.status_code == 200
        assert answer.json() == {"id": "create/upsert", "status": "updated", "revision": 2}
        document = read(client, "create/upsert")
        assert document["content"] == "second"
        assert document["title"] == "Title"
        assert document["tags"] == ["tag"]
        assert document["mime"] == "text/plain"
        assert document["parent_id"] == "elsewhere"
        assert document["metadata"] == {"kept": 1, "new": 3}

    def test_upsert_changes_all_that_is_given(self, shared_server: Server) -> None:
        shared_server.create("create/upsert-all", "first", title="Title", tags=["tag"])
        given = {
            "path": "create/upsert-all",
            "content": "second",
            "title": "Other",
            "tags": ["other"],
            "mime": "text/html",
            "parent_id": "p",
        }
        shared_server.client.post("/documents", json={**given, "upsert": True}).raise_for_status()
        document = read(shared_server.client, "create/upsert-all")
        for name in ("content", "title", "tags", "mime", "parent_id"):
            assert document[name] == given[name]

    def test_upsert_of_a_new_id_creates(self, client: httpx.Client) -> None:
        given = {"path": "create/upsert-new", "content": "x", "upsert": True}
        answer = client.post("/documents", json=given)
        assert answer.status_code == 201
        assert answer.json()["status"] == "created"

    def test_a_deleted_id_is_recreated_with_its_history(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("create/again", "first life", title="Old", metadata={"old": 1})
        client.delete(at("create/again")).raise_for_status()
        answer = client.post("/documents", json={"path": "create/again", "content": "second life"})
        assert answer.status_code == 201
        assert answer.json() == {"id": "create/again", "status": "created", "revision": 3}

        document = read(client, "create/again")
        assert (document["content"], document["title"]) == ("second life", "second life")
        assert document["metadata"] == {}, "nothing of the first life shows in the second"
        history = client.get(at("create/again", "/revisions")).json()["revisions"]
        assert [(one["revision"], one["operation"]) for one in history] == [
            (3, "create"),
            (2, "delete"),
            (1, "create"),
        ]
        first = client.get(at("create/again", "/revisions/1")).json()
        assert (first["content"], first["title"]) == ("first life", "Old")

    def test_titles_and_tags_are_one_line_without_repeats(self, shared_server: Server) -> None:
        shared_server.create(
            "create/lines", title="  two\n lines\t here ", tags=[" a  b", "a b", "", "c"]
        )
        document = read(shared_server.client, "create/lines")
        assert document["title"] == "two lines here"
        assert document["tags"] == ["a b", "c"]


class TestUpdate:
    @pytest.mark.requirement("7.1.g")
    def test_revision_goes_up_by_one_and_the_change_is_read_at_once(
        self, shared_server: Server
    ) -> None:
        client = shared_server.client
        shared_server.create("update/a", "one")
        for revision in range(2, 7):
            answer = client.put(at("update/a"), json={"content": f"text {revision}"})
            assert answer.status_code == 200
            assert answer.json() == {"id": "update/a", "status": "updated", "revision": revision}
            document = read(client, "update/a")
            assert (document["revision"], document["content"]) == (revision, f"text {revision}")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("content", "new"),
            ("content", ""),
            ("title", "New"),
            ("title", ""),
            ("tags", ["new", "tags"]),
            ("tags", []),
            ("mime", "text/plain"),
            ("parent_id", "other/folder"),
        ],
    )
    def test_only_the_field_given_changes(
        self, shared_server: Server, name: str, value: object
    ) -> None:
        client = shared_server.client
        document_id = f"update/only-{name}-{'empty' if not value else 'value'}"
        shared_server.create(
            document_id, "body", title="Title", tags=["t"], metadata={"k": 1}, parent_id="p"
        )
        before = read(client, document_id)
        client.put(at(document_id), json={name: value}).raise_for_status()
        after = read(client, document_id)
        assert after[name] == value
        shown = ("content", "title", "tags", "mime", "parent_id", "metadata", "created_at")
        for other in set(shown) - {name}:
            assert after[other] == before[other]
        assert after["updated_at"] > before["updated_at"]

    def test_metadata_is_merged_by_key_and_null_removes(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("update/meta", metadata={"a": 1, "b": {"x": 1, "y": 2}, "c": 3})
        change: dict[str, Any] = {"a": None, "b": {"x": 9}, "d": [], "never-there": None}
        client.put(at("update/meta"), json={"metadata": change}).raise_for_status()
        assert read(client, "update/meta")["metadata"] == {"b": {"x": 9}, "c": 3, "d": []}

    def test_the_right_last_known_revision_is_let_through(self, shared_server: Server) -> None:
        shared_server.create("update/known")
        answer = shared_server.client.put(
            at("update/known"), json={"content": "new", "last_known_revision": 1}
        )
        assert answer.json()["revision"] == 2

    @pytest.mark.parametrize("given", [0, 1, 3, 2**53 - 1])
    def test_another_last_known_revision_is_a_conflict(
        self, shared_server: Server, given: int
    ) -> None:
        client = shared_server.client
        document_id = f"update/conflict-{given}"
        shared_server.create(document_id, "one")
        client.put(at(document_id), json={"content": "two"}).raise_for_status()
        for answer in (
            client.put(at(document_id), json={"content": "three", "last_known_revision": given}),
            client.patch(
                at(document_id),
                json={"old_str": "two", "new_str": "three", "last_known_revision": given},
            ),
            client.delete(at(document_id), params={"last_known_revision": given}),
            client.post(
                at(document_id, "/revisions/1/restore"), json={"last_known_revision": given}
            ),
        ):
            details = refusal(answer, 409, "CONFLICT")
            assert details == {"document_id": document_id, "expected": given, "actual": 2}
        assert read(client, document_id)["content"] == "two"

    @pytest.mark.parametrize("change", [{}, {"content": None}, {"last_known_revision": 1}])
    def test_nothing_to_change_is_refused(
        self, shared_server: Server, change: dict[str, Any]
    ) -> None:
        client = shared_server.client
        client.post("/documents", json={"path": "update/nothing", "content": "x"})
        details = refusal(client.put(at("update/nothing"), json=change), 422, "INVALID_ARGUMENT")
        assert details["field"] == "content"
        assert read(client, "update/nothing")["revision"] == 1

    def test_a_missing_document_is_not_created(self, client: httpx.Client) -> None:
        answer = client.put(at("update/missing"), json={"content": "x"})
        assert refusal(answer, 404, "NOT_FOUND")["document_id"] == "update/missing"
        refusal(client.get(at("update/missing")), 404, "NOT_FOUND")


class TestDelete:
    def test_is_gone_from_reads_and_cannot_be_changed(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("delete/a", "zebrafish")
        answer = client.delete(at("delete/a"))
        assert answer.status_code == 200
        assert answer.json() == {"id": "delete/a", "status": "deleted", "revision": 2}
        for again in (
            client.delete(at("delete/a")),
            client.get(at("delete/a")),
            client.get(at("delete/a"), params={"view": "preview"}),
            client.put(at("delete/a"), json={"content": "x"}),
            client.put(at("delete/a"), json={"content": "x", "last_known_revision": 2}),
            client.patch(at("delete/a"), json={"old_str": "zebrafish", "new_str": "x"}),
        ):
            assert refusal(again, 404, "NOT_FOUND")["document_id"] == "delete/a"
        assert client.get("/search", params={"query": "zebrafish"}).json()["results"] == []
        assert client.get("/documents", params={"prefix": "delete/a"}).json()["items"] == []

    def test_a_missing_document_is_not_found(self, client: httpx.Client) -> None:
        refusal(client.delete(at("delete/never")), 404, "NOT_FOUND")

    def test_with_the_right_revision(self, shared_server: Server) -> None:
        shared_server.create("delete/known")
        answer = shared_server.client.delete(at("delete/known"), params={"last_known_revision": 1})
        assert answer.status_code == 200


class TestReadYourWrite:
    @pytest.mark.requirement("000/CC.01", "000/CC.03")
    def test_a_thousand_writes_are_each_read_and_listed_at_once(self, server: Server) -> None:
        client = server.client
        for number in range(1000):
            document_id = f"own/{number % 100:03}"
            content = f"write {number}"
            client.post(
                "/documents", json={"path": document_id, "content": content, "upsert": True}
            ).raise_for_status()
            document = read(client, document_id)
            assert document["content"] == content
            assert document["revision"] == number // 100 + 1
            if number % 10 == 0:
                page = client.get("/documents", params={"prefix": document_id}).json()
                assert [(one["document_id"], one["revision"]) for one in page["items"]] == [
                    (document_id, document["revision"])
                ]

    @pytest.mark.requirement("000/CC.01", "000/CC.03")
    def test_on_another_connection_too(self, shared_server: Server) -> None:
        with httpx.Client(base_url=shared_server.url, trust_env=False) as other:
            for number in range(50):
                document_id = f"own-other/{number}"
                shared_server.create(document_id, f"quagga{number}")
                assert read(other, document_id)["content"] == f"quagga{number}"
                listed = other.get("/documents", params={"prefix": document_id}).json()
                assert listed["count"] == 1
                found = other.get("/search", params={"query": f"quagga{number}"}).json()
                assert document_id in [hit["document_id"] for hit in found["results"]]

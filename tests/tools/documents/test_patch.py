"""Patching: exact passages, all or none."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


def body_of(client: httpx.Client, document_id: str) -> tuple[str, int]:
    document = client.get(at(document_id)).json()
    return document["content"], document["revision"]


@pytest.mark.requirement("7.1.h")
def test_a_single_place_is_replaced(shared_server: Server) -> None:
    client = shared_server.client
    shared_server.create("patch/one", "alpha beta gamma", title="Kept", metadata={"k": 1})
    answer = client.patch(at("patch/one"), json={"old_str": "beta", "new_str": "BETA"})
    assert answer.status_code == 200
    assert answer.json() == {
        "id": "patch/one",
        "status": "patched",
        "revision": 2,
        "replaced": 1,
    }
    document = client.get(at("patch/one")).json()
    assert document["content"] == "alpha BETA gamma"
    assert document["title"] == "Kept"
    assert document["metadata"] == {"k": 1}


@pytest.mark.parametrize(
    ("body", "old", "new", "expected"),
    [
        ("abc", "b", "", "ac"),
        ("abc", "abc", "", ""),
        ("a\nb\r\nc", "\r\n", "\n", "a\nb\nc"),
        ("naïve 日本語 😀", "日本", "中国", "naïve 中国語 😀"),
        ("👩‍👩‍👧 family", "👩‍👧", "🧑", "👩‍🧑 family"),
        ("x.*y", ".*", "[0-9]", "x[0-9]y"),
        (r"back\slash \1 \g<0>", r"\1", r"\g<0>\2", r"back\slash \g<0>\2 \g<0>"),
        ("same", "same", "same", "same"),
        ("ab", "ab", "abab", "abab"),
    ],
)
def test_text_is_taken_literally(
    shared_server: Server, body: str, old: str, new: str, expected: str
) -> None:
    client = shared_server.client
    client.post(
        "/documents", json={"path": "patch/literal", "content": body, "upsert": True}
    ).raise_for_status()
    answer = client.patch(at("patch/literal"), json={"old_str": old, "new_str": new})
    assert answer.status_code == 200, answer.text
    assert body_of(client, "patch/literal")[0] == expected


def test_spellings_of_a_letter_are_told_apart(shared_server: Server) -> None:
    shared_server.create("patch/nfd", "cafe\u0301 and caf\u00e9")
    client = shared_server.client
    client.patch(at("patch/nfd"), json={"old_str": "caf\u00e9", "new_str": "tea"})
    assert body_of(client, "patch/nfd") == ("cafe\u0301 and tea", 2)


@pytest.mark.requirement("7.1.i")
@pytest.mark.parametrize(
    ("body", "old", "count"),
    [
        ("x x", "x", 2),
        ("one two one two one", "one", 3),
        ("aaa", "aa", 2),
        ("abababa", "aba", 2),
        ("\n\n\n", "\n", 3),
        ("😀😀", "😀", 2),
    ],
)
def test_more_than_one_match_is_ambiguous(
    shared_server: Server, body: str, old: str, count: int
) -> None:
    client = shared_server.client
    path = {"path": "patch/ambiguous", "content": body, "upsert": True}
    revision = client.post("/documents", json=path).json()["revision"]
    answer = client.patch(at("patch/ambiguous"), json={"old_str": old, "new_str": "new"})
    assert refusal(answer, 409, "AMBIGUOUS") == {"count": count, "replacement": 0}
    assert body_of(client, "patch/ambiguous") == (body, revision)


@pytest.mark.parametrize("old", ["missing", "Alpha", "alpha  beta", "alpha beta gamma "])
def test_no_match_is_said_so(shared_server: Server, old: str) -> None:
    client = shared_server.client
    path = {"path": "patch/none", "content": "alpha beta gamma", "upsert": True}
    revision = client.post("/documents", json=path).json()["revision"]
    answer = client.patch(at("patch/none"), json={"old_str": old, "new_str": "x"})
    assert refusal(answer, 409, "NOT_FOUND_IN_CONTENT") == {"replacement": 0}
    assert body_of(client, "patch/none") == ("alpha beta gamma", revision)


@pytest.mark.parametrize(
    ("body", "old", "new", "expected", "places"),
    [
        ("x y x", "x", "z", "z y z", 2),
        ("one", "one", "two", "two", 1),
        ("aaa", "aa", "b", "ba", 1),
        ("aaaa", "a", "aa", "aaaaaaaa", 4),
    ],
)
def test_replace_all(
    shared_server: Server, body: str, old: str, new: str, expected: str, places: int
) -> None:
    client = shared_server.client
    client.post("/documents", json={"path": "patch/all", "content": body, "upsert": True})
    answer = client.patch(
        at("patch/all"), json={"old_str": old, "new_str": new, "replace_all": True}
    )
    assert answer.json()["replaced"] == places
    assert body_of(client, "patch/all")[0] == expected


def test_replace_all_needs_a_match_too(shared_server: Server) -> None:
    shared_server.create("patch/all-none", "text")
    answer = shared_server.client.patch(
        at("patch/all-none"), json={"old_str": "no", "new_str": "x", "replace_all": True}
    )
    refusal(answer, 409, "NOT_FOUND_IN_CONTENT")


def test_several_replacements_build_on_one_another(shared_server: Server) -> None:
    client = shared_server.client
    shared_server.create("patch/several", "a b b c")
    answer = client.patch(
        at("patch/several"),
        json={
            "replacements": [
                {"old_str": "a", "new_str": "first"},
                {"old_str": "b", "new_str": "B", "replace_all": True},
                {"old_str": "first B", "new_str": "done"},
            ]
        },
    )
    assert answer.json()["replaced"] == 4
    assert body_of(client, "patch/several") == ("done B c", 2)


@pytest.mark.parametrize(
    ("second", "status", "code"),
    [
        ({"old_str": "missing", "new_str": "x"}, 409, "NOT_FOUND_IN_CONTENT"),
        ({"old_str": "b", "new_str": "x"}, 409, "AMBIGUOUS"),
        ({"old_str": "", "new_str": "x"}, 422, "INVALID_ARGUMENT"),
    ],
)
def test_several_replacements_happen_together_or_not_at_all(
    shared_server: Server, second: dict[str, str], status: int, code: str
) -> None:
    client = shared_server.client
    path = {"path": "patch/atomic", "content": "a b b", "upsert": True}
    revision = client.post("/documents", json=path).json()["revision"]
    first = {"old_str": "a", "new_str": "A"}
    answer = client.patch(at("patch/atomic"), json={"replacements": [first, second]})
    details = refusal(answer, status, code)
    if status == 409:
        assert details["replacement"] == 1, "the caller is told which one failed"
    assert body_of(client, "patch/atomic") == ("a b b", revision)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "old_str"),
        ({"old_str": "", "new_str": "x"}, "old_str"),
        ({"old_str": "a"}, "new_str"),
        ({"new_str": "a"}, "old_str"),
        ({"replacements": []}, "old_str"),
        ({"old_str": "a", "new_str": "b", "replacements": [{}]}, "replacements.0.old_str"),
        (
            {"old_str": "a", "new_str": "b", "replacements": [{"old_str": "a", "new_str": "b"}]},
            "replacements",
        ),
        ({"replacements": [{"old_str": "a", "new_str": "b"}] * 101}, "replacements"),
        ({"replacements": {"old_str": "a", "new_str": "b"}}, "replacements"),
        ({"old_str": "text", "new_str": None}, "new_str"),
        ({"old_str": "text", "new_str": "nul \0"}, "content"),
    ],
)
def test_an_unclear_patch_is_refused(
    client: httpx.Client, given: dict[str, object], field: str
) -> None:
    client.post("/documents", json={"path": "patch/unclear", "content": "text a"})
    answer = client.patch(at("patch/unclear"), json=given)
    assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field
    assert body_of(client, "patch/unclear") == ("text a", 1)


def test_a_missing_document_is_not_found(client: httpx.Client) -> None:
    answer = client.patch(at("patch/missing"), json={"old_str": "a", "new_str": "b"})
    refusal(answer, 404, "NOT_FOUND")


def test_a_patch_that_would_fill_the_memory_is_refused_before_it_is_built(
    shared_server: Server,
) -> None:
    """A million places times a megabyte would be a terabyte."""
    client = shared_server.client
    shared_server.create("patch/bomb", "a" * 1_000_000)
    answer = client.patch(
        at("patch/bomb"), json={"old_str": "a", "new_str": "b" * 1_000_000, "replace_all": True}
    )
    assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "new_str"
    assert body_of(client, "patch/bomb") == ("a" * 1_000_000, 1)


def test_a_body_that_repeats_itself_is_searched_in_linear_time(shared_server: Server) -> None:
    """Looking at every overlapping match of half the body would take hours."""
    shared_server.create("patch/periodic", "a" * 2_000_000)
    answer = shared_server.client.patch(
        at("patch/periodic"), json={"old_str": "a" * 1_000_000, "new_str": "b"}
    )
    assert refusal(answer, 409, "AMBIGUOUS")["count"] == 2


class TestAppendingAndPrepending:
    @pytest.mark.parametrize(
        ("body", "edit", "expected"),
        [
            ("one", {"append": "two"}, "one\ntwo"),
            ("one\n", {"append": "two\n"}, "one\ntwo\n"),
            ("one", {"append": "\n\ntwo"}, "one\n\ntwo"),
            ("", {"append": "two"}, "two"),
            ("one", {"prepend": "zero"}, "zero\none"),
            ("one", {"prepend": "zero", "append": "two"}, "zero\none\ntwo"),
            ("one", {"old_str": "one", "new_str": "1", "append": "two"}, "1\ntwo"),
            (
                "one",
                {"replacements": [{"old_str": "one", "new_str": "1"}], "prepend": "0\n"},
                "0\n1",
            ),
            ("one " * 30_000, {"append": "two"}, "one " * 30_000 + "\ntwo"),
        ],
    )
    def test_on_a_line_of_its_own(
        self, shared_server: Server, body: str, edit: dict[str, Any], expected: str
    ) -> None:
        path = "patch/ends"
        mcp = Mcp(shared_server.client)
        mcp.call("upload_document", path=path, content=body, title="t", upsert=True)
        before = mcp.call("get_document_for_rewrite", path=path)["revision"]
        answer = mcp.call("patch_document", path=path, **edit)
        assert answer["replaced"] == int("old_str" in str(edit))
        after = mcp.call("get_document_for_rewrite", path=path)
        assert after["content"] == expected
        assert after["revision"] == before + 1

    def test_the_revision_counts_and_the_size_is_bounded(self, shared_server: Server) -> None:
        mcp = Mcp(shared_server.client)
        mcp.call("upload_document", path="patch/bound", content="one", upsert=True)
        error = mcp.failure(
            "patch_document", path="patch/bound", append="x", last_known_revision=999
        )
        assert error["code"] == "CONFLICT"
        assert mcp.failure("patch_document", path="patch/bound")["code"] == "INVALID_ARGUMENT"
        assert (
            "There is no document"
            in mcp.failure("patch_document", path="no/1", append="x")["message"]
        )

    def test_rest_too(self, shared_server: Server) -> None:
        shared_server.create("patch/rest", "one")
        client = shared_server.client
        answer = client.patch("/documents/patch/rest", json={"append": "two"})
        assert answer.status_code == 200, answer.text
        assert client.get("/documents/patch/rest").json()["content"] == "one\ntwo"

"""Listing at its bounds: more than 10 000 documents, and the bytes an answer may have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.engines import backend_of
from tests.drivers.server import Server
from tests.drivers.urls import refusal
from zibaldone.limits import LIST_OFFSET_MAX, Limits

COUNT = LIST_OFFSET_MAX + 100
BYTES_MAX = 3_000


def listing(client: httpx.Client, **params: Any) -> dict[str, Any]:
    answer = client.get("/documents", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def ids(page: dict[str, Any]) -> list[str]:
    return [item["document_id"] for item in page["items"]]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    data = tmp_path_factory.mktemp("many") / "data"
    tables = backend_of(data)
    tables.open(Limits()).close()
    tables.add_documents(COUNT, "many")
    with Server(data) as server:
        yield server.client


class TestManyDocuments:
    """X-17: an offset has an end; the caller is told before it runs into it."""

    @pytest.mark.requirement("000/PG.04")
    def test_the_largest_offset_is_accepted(self, many: httpx.Client) -> None:
        page = listing(many, offset=LIST_OFFSET_MAX, limit=100)
        assert ids(page) == [f"many/{number:06}" for number in range(LIST_OFFSET_MAX, COUNT)]
        assert page["next_offset"] is None
        assert page["truncated"] is False, "this is the end, not a cut"
        assert "hint" not in page

    @pytest.mark.requirement("X-17")
    def test_up_to_the_cap_the_next_offset_is_given(self, many: httpx.Client) -> None:
        page = listing(many, offset=9_900, limit=100)
        assert page["next_offset"] == LIST_OFFSET_MAX
        assert page["truncated"] is False
        assert "hint" not in page

    @pytest.mark.requirement("X-17", "X-18")
    @pytest.mark.parametrize(
        ("offset", "limit"), [(9_950, 100), (9_901, 100), (10_000, 1), (10_000, 99)]
    )
    def test_beyond_the_cap_there_is_a_hint_instead(
        self, many: httpx.Client, offset: int, limit: int
    ) -> None:
        page = listing(many, offset=offset, limit=limit)
        assert page["count"] == limit
        assert page["next_offset"] is None
        assert page["truncated"] is True
        assert "narrower prefix" in page["hint"]
        assert "next_cursor" in page["hint"]
        following = listing(many, cursor=page["next_cursor"], limit=1)
        assert ids(following) == [f"many/{offset + limit:06}"]

    @pytest.mark.requirement("X-17")
    def test_the_cursor_has_no_cap(self, many: httpx.Client) -> None:
        seen: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = listing(many, limit=100, **more)
            seen += ids(page)
            assert page["truncated"] is False
            if "next_cursor" not in page:
                break
            more = {"cursor": page["next_cursor"]}
        assert seen == [f"many/{number:06}" for number in range(COUNT)]

    def test_a_cursor_taken_beyond_the_cap_goes_on(self, many: httpx.Client) -> None:
        cursor = listing(many, offset=LIST_OFFSET_MAX, limit=50)["next_cursor"]
        page = listing(many, cursor=cursor, limit=100)
        assert ids(page) == [f"many/{number:06}" for number in range(COUNT - 50, COUNT)]
        assert page["next_offset"] is None
        assert "hint" not in page


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {"ZIBALDONE_LIST_RESPONSE_BYTES_MAX": str(BYTES_MAX)}
    data = tmp_path_factory.mktemp("guarded") / "data"
    with Server(data, environment=environment) as server:
        for number in range(40):
            server.create(f"page/{number:02}", title="t" * (17 * number), tags=["a", "b"])
        server.create("wide/1-small")
        server.create("wide/2-too-wide", tags=[f"{number:064}" for number in range(60)])
        server.create("wide/3-small")
        yield server


class TestBytes:
    """X-18: the guard cuts a page and says so; an item that cannot be sent at all is an error."""

    @pytest.mark.requirement("000/P1.11", "X-18")
    def test_a_page_is_cut_and_says_so(self, guarded: Server) -> None:
        page = listing(guarded.client, prefix="page/", limit=40)
        assert page["truncated"] is True
        assert 0 < page["count"] < 40
        assert page["next_offset"] == page["count"] == len(page["items"])
        whole = [f"page/{number:02}" for number in range(40)]
        assert ids(page) == whole[: page["count"]]

    @pytest.mark.requirement("000/P1.11", "X-18")
    @pytest.mark.parametrize("by", ["offset", "cursor"])
    @pytest.mark.parametrize("limit", [3, 10, 40, 100])
    def test_all_pages_together_are_everything(self, guarded: Server, by: str, limit: int) -> None:
        seen: list[str] = []
        more: dict[str, Any] = {}
        while True:
            page = listing(guarded.client, prefix="page/", limit=limit, **more)
            assert len(json.dumps(page["items"], separators=(",", ":"))) <= BYTES_MAX
            assert page["truncated"] is (page["count"] < limit and "next_cursor" in page)
            seen += ids(page)
            if "next_cursor" not in page:
                break
            more = {by: page[f"next_{by}"]}
        assert seen == [f"page/{number:02}" for number in range(40)]

    @pytest.mark.requirement("X-18")
    def test_a_page_that_fits_is_not_truncated(self, guarded: Server) -> None:
        page = listing(guarded.client, prefix="page/0", limit=5)
        assert (page["count"], page["truncated"], page["next_offset"]) == (5, False, 5)

    @pytest.mark.requirement("X-18")
    def test_an_item_too_large_for_any_answer(self, guarded: Server) -> None:
        client = guarded.client
        first = listing(client, prefix="wide/")
        assert (ids(first), first["truncated"]) == (["wide/1-small"], True)
        for following in ({"offset": first["next_offset"]}, {"cursor": first["next_cursor"]}):
            answer = client.get("/documents", params={"prefix": "wide/", **following})
            details = refusal(answer, 422, "RESPONSE_TOO_LARGE")
            assert details == {"bytes_max": BYTES_MAX}
        assert ids(listing(client, prefix="wide/", offset=2)) == ["wide/3-small"]

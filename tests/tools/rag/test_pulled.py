"""The rag tools over rows of a real database, through a running server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.pulled import (
    EVERYWHERE,
    POSTS,
    ROWS,
    Post,
    Pulling,
    connected,
    ids,
    make_posts,
    posts_toml,
    pulling,
)
from tests.drivers.rag import SEARCHES, asking, docs_of, wait_until_indexed

JOB_ID = re.compile(r"sync-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
HOSTILE = [
    "plain",
    "it's",
    'say "hi"',
    "a;b",
    "x' OR '1'='1",
    "'); DROP TABLE notes; --",
    "ü/ö",
    "%",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulling]:
    folder = tmp_path_factory.mktemp("pulled")
    file = folder / "posts.db"
    make_posts(file)
    with connected(file) as raw:
        raw.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT)")
        raw.executemany(
            "INSERT INTO notes VALUES (?, ?)", [(name, f"note of {name}") for name in HOSTILE]
        )
        raw.execute("CREATE TABLE hidden (Id INTEGER PRIMARY KEY, Body TEXT)")
        raw.execute("INSERT INTO hidden VALUES (1, ?)", (f"{EVERYWHERE} but hidden",))
    notes = (
        f'[sources.notes]\nurl = "sqlite:///{file}"\ntable = "notes"\nkey = "name"\n'
        '[sources.notes.document]\nbody = "body"\n'
    )
    with pulling(folder, posts_toml(file) + notes) as started:
        assert started.sync()["created"] == ROWS
        wait_until_indexed(started.server)
        yield started


@pytest.fixture
def file(run: Pulling) -> Path:
    return run.config.parent / "posts.db"


# ---- syncing ----


@pytest.mark.requirement("RAG-80", "RAG-81", "RAG-82", "RAG-85")
def test_a_sync_is_accepted_and_can_be_followed(run: Pulling) -> None:
    first = run.rag.call("rag.admin.sync", source_names=["posts"])
    assert first["accepted"] is True
    assert JOB_ID.fullmatch(first["job_id"])
    assert first["jobs"] == [{"source_name": "posts", "job_id": first["job_id"]}]
    assert first["stats"]["ms"] >= 0
    job = run.ended(first["job_id"])
    assert (job["job_id"], job["kind"], job["state"]) == (first["job_id"], "sync", "done")
    assert (job["subject"], job["result"]["unchanged"]) == ("posts", ROWS)
    second = run.rag.call("rag.admin.sync", source_names=["posts"])
    assert second["job_id"] != first["job_id"]
    run.ended(second["job_id"])
    listed = run.server.client.get("/jobs", params={"kind": "sync"}).json()["jobs"]
    assert [listed[0]["job_id"], listed[1]["job_id"]] == [second["job_id"], first["job_id"]]
    page = run.server.client.get("/jobs", params={"kind": "sync", "limit": 1}).json()
    after = page["next_after"]
    rest = run.server.client.get("/jobs", params={"kind": "sync", "after": after}).json()
    assert rest["jobs"][0]["job_id"] == first["job_id"]


@pytest.mark.requirement("RAG-82")
def test_without_names_all_sources_are_synced_and_unknown_ones_refused(run: Pulling) -> None:
    answer = run.rag.call("rag.admin.sync")
    assert {job["source_name"] for job in answer["jobs"]} == {"posts", "notes"}
    assert len({job["job_id"] for job in answer["jobs"]}) == 2
    for job in answer["jobs"]:
        run.ended(job["job_id"])
    failure = run.rag.failure("rag.admin.sync", source_names=["posts", "post"])
    assert failure["code"] == "INVALID_ARGUMENT"
    assert "Did you mean 'posts'?" in failure["message"]
    assert run.rag.failure("rag.admin.sync", source_names=["kb"])["code"] == "INVALID_ARGUMENT"


@pytest.mark.requirement("RAG-78", "RAG-79")
def test_the_counts_are_those_of_the_tables(run: Pulling) -> None:
    sources = {one["source_name"]: one for one in run.rag.call("rag.admin.stats")["sources"]}
    assert {*sources} == {"kb", "posts", "notes"}
    for name, count in (("posts", ROWS), ("notes", len(HOSTILE)), ("kb", 0)):
        assert sources[name]["docs"] == count
        ((chunks,),) = run.backend.query(
            "SELECT count(*) FROM chunks c JOIN documents d ON d.document_key = c.document_key"
            " WHERE d.source_id = ? AND d.deleted_at_us IS NULL",
            (sources[name]["source_id"],),
        )
        assert sources[name]["chunks"] == chunks
    before = sources["posts"]["last_sync"]
    assert sources["kb"]["last_sync"] is None
    run.sync("posts")
    after = {one["source_name"]: one for one in run.rag.call("rag.admin.stats")["sources"]}
    assert before < after["posts"]["last_sync"]


@pytest.mark.requirement("RAG-03", "RAG-05", "RAG-67", "RAG-68", "X-24")
def test_a_row_is_a_document_with_its_key(run: Pulling) -> None:
    post = POSTS[11]
    (doc,) = run.rag.call("rag.get_docs", doc_ids=[post.doc_id])["docs"]
    stats = run.rag.call("rag.admin.stats")["sources"]
    assert {"source_id": doc["source_id"], "source_name": doc["source_name"]} in [
        {"source_id": one["source_id"], "source_name": one["source_name"]} for one in stats
    ]
    assert (doc["source_name"], doc["pk_json"]) == ("posts", {"Id": 12})
    assert doc["title"] == post.row["Title"]
    assert doc["body"].startswith(f"{EVERYWHERE} text on")
    wanted = ("PostTypeId", "Tags", "Score", "CreationDate")
    assert doc["metadata"] == {
        name: post.row[name] for name in wanted if post.row[name] is not None
    }


# ---- filters ----

_MORNING = datetime(2024, 1, 11, 8, tzinfo=UTC)
_LATER = datetime(2024, 1, 22, tzinfo=UTC)
FILTERS: dict[str, tuple[dict[str, Any], Callable[[Post], bool]]] = {
    "doc_ids": (
        {"doc_ids": ["posts:3", "posts:41", "posts:999"]},
        lambda post: post.number in (3, 41),
    ),
    "min_score": (
        {"min_score": 5},
        lambda post: post.score is not None and post.score >= 5,
    ),
    "post_type_ids": ({"post_type_ids": [1, 3]}, lambda post: post.post_type in (1, 3)),
    "tags_any": ({"tags_any": ["mysql", "JSON"]}, lambda post: bool(post.tags & {"mysql", "json"})),
    "tags_all": ({"tags_all": ["mysql", "c++"]}, lambda post: post.tags >= {"mysql", "c++"}),
    "created_after": (
        {"created_after": "2024-01-11T08:00:00Z"},
        lambda post: post.created >= _MORNING,
    ),
    "created_before": (
        {"created_before": "2024-01-22T00:00:00Z"},
        lambda post: post.created < _LATER,
    ),
}  # fmt: skip


def check(run: Pulling, filters: dict[str, Any], allowed: set[str]) -> None:
    given = {"source_names": ["posts"], **filters}
    found: list[str] = []
    while len(page := docs_of(run.rag.call(
        "rag.search_fts", query=EVERYWHERE, k=50, offset=len(found), filters=given
    ))) == 50:  # fmt: skip
        found += page
    found += page
    assert sorted(found) == sorted(allowed)
    for tool in SEARCHES[1:]:
        hits = docs_of(run.rag.call(tool, **asking(tool, EVERYWHERE, k=50, filters=given)))
        assert {*hits} <= allowed, tool
        assert len(hits) == min(50, len(allowed)), tool


@pytest.mark.requirement(
    "RAG-16", "RAG-18", "RAG-19", "RAG-20", "RAG-21", "RAG-22", "RAG-23", "RAG-24", "RAG-29", "X-23"
)
@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_over_pulled_rows(run: Pulling, name: str) -> None:
    filters, condition = FILTERS[name]
    allowed = ids(condition)
    assert 0 < len(allowed) < ROWS
    check(run, filters, allowed)


@pytest.mark.requirement("RAG-25")
def test_filters_over_pulled_rows_hold_together(run: Pulling) -> None:
    for one, other in combinations(("min_score", "post_type_ids", "tags_any", "created_after"), 2):
        (first, is_first), (second, is_second) = FILTERS[one], FILTERS[other]
        check(run, {**first, **second}, ids(lambda p: is_first(p) and is_second(p)))  # noqa: B023


@pytest.mark.requirement("RAG-17", "RAG-26", "RAG-30")
def test_sources_by_id_and_by_name(run: Pulling) -> None:
    known = {
        one["source_name"]: one["source_id"] for one in run.rag.call("rag.admin.stats")["sources"]
    }
    check(run, {"source_ids": [known["posts"]]}, ids(lambda post: True))
    check(run, {"source_ids": [known["notes"]]}, set())
    for tool in SEARCHES:
        failure = run.rag.failure(tool, **asking(tool, filters={"source_names": ["kb", "poests"]}))
        assert failure["code"] == "INVALID_ARGUMENT"
        assert failure["details"]["field"] == "filters.source_names"
        assert "Did you mean 'posts'?" in failure["message"]


@pytest.mark.requirement("RAG-27")
def test_a_disabled_source_is_not_searched_fetched_or_synced(
    run: Pulling, request: pytest.FixtureRequest
) -> None:
    def set_enabled(enabled: bool) -> None:
        run.backend.execute(f"UPDATE sources SET enabled = {int(enabled)} WHERE name = 'posts'")

    request.addfinalizer(lambda: set_enabled(True))
    set_enabled(False)
    check(run, {}, set())
    assert run.rag.call("rag.search_fts", query=EVERYWHERE)["results"] == []
    assert run.rag.call("rag.fetch_from_source", doc_ids=["posts:1"])["missing"] == ["posts:1"]
    assert run.rag.failure("rag.admin.sync", source_names=["posts"])["code"] == "CONFLICT"
    assert [job["source_name"] for job in run.rag.call("rag.admin.sync")["jobs"]] == ["notes"]


# ---- fetching rows ----


@pytest.mark.requirement("RAG-70", "RAG-71", "RAG-73", "RAG-76")
def test_the_row_as_it_is_now(run: Pulling, file: Path) -> None:
    answer = run.rag.call(
        "rag.fetch_from_source", doc_ids=["posts:12", "posts:5"], columns=["Score", "Title", "Id"]
    )
    assert answer["truncated"] is False
    assert answer["missing"] == []
    assert answer["rows"] == [
        {
            "doc_id": post.doc_id,
            "source_name": "posts",
            "row": {name: post.row[name] for name in ("Score", "Title", "Id")},
        }
        for post in (POSTS[11], POSTS[4])
    ]
    with connected(file) as raw:
        raw.execute("UPDATE posts SET Title = 'Only in the source' WHERE Id = 20")
    (row,) = run.rag.call("rag.fetch_from_source", doc_ids=["posts:20"], columns=["Title"])["rows"]
    assert row["row"] == {"Title": "Only in the source"}
    (doc,) = run.rag.call("rag.get_docs", doc_ids=["posts:20"])["docs"]
    assert doc["title"] == POSTS[19].row["Title"]


@pytest.mark.requirement("RAG-74", "RAG-77")
@pytest.mark.parametrize(
    "column", ["Secret", "secret", "UpdatedAt", "1; DROP TABLE posts", "*", ""]
)
def test_other_columns_are_refused(run: Pulling, column: str) -> None:
    failure = run.rag.failure("rag.fetch_from_source", doc_ids=["posts:1"], columns=[column])
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"]["allowed"][0] == "Id"
    assert "Secret" not in str(failure["details"]["allowed"])
    (row,) = run.rag.call("rag.fetch_from_source", doc_ids=["posts:1"])["rows"]
    assert [*row["row"]] == ["Id", "Title", "Body", "Tags", "Score", "CreationDate"]
    for sql in ("sql", "query", "where", "table", "statement"):
        refused = run.rag.failure("rag.fetch_from_source", doc_ids=["posts:1"], **{sql: "SELECT 1"})
        assert refused["code"] == "INVALID_ARGUMENT"


@pytest.mark.requirement("RAG-75")
def test_rows_and_bytes_are_bounded(run: Pulling) -> None:
    wanted = [post.doc_id for post in POSTS[:30]]
    answer = run.rag.call("rag.fetch_from_source", doc_ids=wanted, columns=["Id"])
    assert [row["doc_id"] for row in answer["rows"]] == wanted[:10]
    assert (answer["truncated"], answer["left_out"]) == (True, wanted[10:])
    answer = run.rag.call(
        "rag.fetch_from_source", doc_ids=wanted, columns=["Id"], limits={"max_rows": 50}
    )
    assert len(answer["rows"]) == 30
    assert answer["truncated"] is False
    answer = run.rag.call(
        "rag.fetch_from_source", doc_ids=wanted, limits={"max_rows": 50, "max_bytes": 2_000}
    )
    assert 0 < len(answer["rows"]) < 30
    assert answer["truncated"] is True
    assert [*(row["doc_id"] for row in answer["rows"]), *answer["left_out"]] == wanted
    assert len(str(answer["rows"])) < 2_500
    tiny = run.rag.call("rag.fetch_from_source", doc_ids=["posts:1"], limits={"max_bytes": 5})
    assert (tiny["rows"], tiny["left_out"], tiny["truncated"]) == ([], ["posts:1"], True)


@pytest.mark.requirement("RAG-72", "RAG-77")
def test_keys_are_bound_whatever_is_in_them(run: Pulling, file: Path) -> None:
    found = run.rag.call("rag.search_fts", query="note", k=50, filters={"source_names": ["notes"]})
    doc_ids = {hit["doc_id"] for hit in found["results"]}
    assert len(doc_ids) == len(HOSTILE)
    answer = run.rag.call("rag.fetch_from_source", doc_ids=sorted(doc_ids))
    assert {row["row"]["name"] for row in answer["rows"]} == {*HOSTILE}
    for row in answer["rows"]:
        assert row["row"]["body"] == f"note of {row['row']['name']}"
    unknown = ["posts:1 OR 1=1", "posts:1'; DROP TABLE posts; --", "posts:", "nothing", "\u0000"]
    answer = run.rag.call("rag.fetch_from_source", doc_ids=unknown)
    assert (answer["rows"], answer["missing"]) == ([], unknown)
    with connected(file) as raw:
        assert raw.execute("SELECT count(*) FROM posts").fetchone() == (ROWS,)
        assert raw.execute("SELECT count(*) FROM notes").fetchone() == (len(HOSTILE),)


def test_a_document_that_is_no_row_cannot_be_fetched(run: Pulling) -> None:
    run.server.create("by-hand", "text")
    failure = run.rag.failure("rag.fetch_from_source", doc_ids=["posts:1", "by-hand"])
    assert failure["code"] == "INVALID_ARGUMENT"
    assert "not from a database" in failure["message"]
    run.server.client.delete("/documents/by-hand")


# ---- changes ----


@pytest.mark.requirement("RAG-69", "RAG-83", "RAG-03")
def test_changes_are_found_after_the_next_sync(run: Pulling, file: Path) -> None:
    with connected(file) as raw:
        raw.execute(
            "UPDATE posts SET Body = 'zyzzyva', UpdatedAt = '2024-06-01 00:00:00' WHERE Id = 33"
        )
        raw.execute("DELETE FROM posts WHERE Id = 34")
        raw.execute(
            "INSERT INTO posts (Id, Title, Body, UpdatedAt) VALUES (1000, 'New', 'quokka', NULL)"
        )
    result = run.sync("posts")
    changed = {name: result[name] for name in ("created", "deleted", "failed")}
    assert changed == {"created": 1, "deleted": 1, "failed": 0}
    assert result["updated"] >= 1

    def found(word: str) -> list[str]:
        return docs_of(run.rag.call("rag.search_fts", query=word))

    assert (found("zyzzyva"), found("quokka"), found("n34")) == (["posts:33"], ["posts:1000"], [])
    answer = run.rag.call("rag.get_docs", doc_ids=["posts:34", "posts:33"])
    assert ([doc["doc_id"] for doc in answer["docs"]], answer["missing"]) == (
        ["posts:33"], ["posts:34"],
    )  # fmt: skip
    gone = run.rag.call("rag.fetch_from_source", doc_ids=["posts:34"])
    assert (gone["rows"], gone["missing"]) == ([], ["posts:34"])
    wait_until_indexed(run.server)
    (hit, *_) = run.rag.call("rag.search_vector", query_text="quokka")["results"]
    assert hit["doc_id"] == "posts:1000"
    # Back to what it was, for the other tests.
    with connected(file) as raw:
        raw.execute("DELETE FROM posts")
        raw.executemany(
            "INSERT INTO posts VALUES (:Id, :PostTypeId, :Title, :Body, :Tags, :Score,"
            " :CreationDate, :UpdatedAt, :Secret)",
            [post.row for post in POSTS],
        )
    run.sync("posts")
    wait_until_indexed(run.server)
    assert found("n34") == ["posts:34"]


# ---- one at a time, and stopping ----


@pytest.mark.requirement("RAG-80")
def test_again_while_running_is_the_same_job_and_it_can_be_cancelled(
    run: Pulling, file: Path, request: pytest.FixtureRequest
) -> None:
    """A view that takes minutes: the job runs on, is told apart by nobody, and stops when asked."""
    with connected(file) as raw:
        raw.execute("ALTER TABLE notes RENAME TO notes_kept")
        raw.execute(
            "CREATE VIEW notes AS WITH RECURSIVE n(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000)"
            " SELECT 'a' AS name, 'b' AS body FROM n WHERE x < 0"
        )

    def restore() -> None:
        with connected(file) as raw:
            raw.execute("DROP VIEW IF EXISTS notes")
            raw.execute("ALTER TABLE notes_kept RENAME TO notes")

    request.addfinalizer(restore)
    first = run.rag.call("rag.admin.sync", source_names=["notes"])["job_id"]
    run.job_until(first, lambda job: job["state"] == "running")
    for _ in range(2):
        assert run.rag.call("rag.admin.sync", source_names=["notes"])["job_id"] == first
    # The others go on meanwhile.
    assert run.sync("posts")["failed"] == 0
    asked = run.server.client.post(f"/jobs/{first}/cancel")
    assert asked.status_code == 200, asked.text
    started_s = time.monotonic()
    assert run.ended(first)["state"] == "cancelled"
    assert time.monotonic() - started_s < 50
    stats = {one["source_name"]: one for one in run.rag.call("rag.admin.stats")["sources"]}
    assert stats["notes"]["docs"] == len(HOSTILE)


@pytest.mark.requirement("RAG-84")
def test_a_table_that_is_gone_fails_the_job_and_keeps_the_documents(
    run: Pulling, file: Path, request: pytest.FixtureRequest
) -> None:
    with connected(file) as raw:
        raw.execute("ALTER TABLE notes RENAME TO elsewhere")

    def restore() -> None:
        with connected(file) as raw:
            raw.execute("ALTER TABLE elsewhere RENAME TO notes")

    request.addfinalizer(restore)
    job = run.ended(run.rag.call("rag.admin.sync", source_names=["notes"])["job_id"])
    assert job["state"] == "parked"
    assert "no table or view 'notes'" in job["error"]
    assert job["error"].endswith("[INVALID_ARGUMENT]")
    failure = run.rag.failure("rag.fetch_from_source", doc_ids=["notes:plain"])
    assert failure["code"] == "INVALID_ARGUMENT"
    stats = {one["source_name"]: one for one in run.rag.call("rag.admin.stats")["sources"]}
    assert stats["notes"]["docs"] == len(HOSTILE)


def test_a_job_survives_a_restart(run: Pulling, file: Path) -> None:
    job_id = run.rag.call("rag.admin.sync", source_names=["posts"])["job_id"]
    run.server.kill()
    run.server.start()
    assert run.ended(job_id)["state"] == "done"
    assert run.rag.call("rag.admin.stats")["sources"][1]["docs"] == ROWS


def test_health_and_metrics_tell_how_far_a_source_is_behind(run: Pulling) -> None:
    run.sync("posts")
    deadline_s = time.monotonic() + 20
    while True:
        service = run.server.client.get("/health").json()["services"]["sources"]
        by_name = {one["source"]: one for one in service.get("sources", ())}
        if by_name and by_name["posts"]["last_sync"] is not None:
            break
        assert time.monotonic() < deadline_s, service
        time.sleep(0.1)
    assert service["status"] == "ok"
    posts = by_name["posts"]
    assert (posts["mode"], posts["is_late"], posts["problem"]) == ("on request", False, None)
    assert posts["lag_seconds"] >= 0
    metrics = run.server.client.get("/metrics").text
    assert 'zibaldone_source_lag_seconds{namespace="default",source="posts"}' in metrics
    assert "zibaldone_source_last_sync_timestamp_seconds" in metrics


# ---- without sources ----


def test_without_a_source_nothing_is_configured(tmp_path: Path) -> None:
    with pulling(tmp_path, "") as run:
        for tool, arguments in (
            ("rag.admin.sync", {}),
            ("rag.admin.sync", {"source_names": ["posts"]}),
            ("rag.fetch_from_source", {"doc_ids": ["posts:1"]}),
        ):
            assert run.rag.failure(tool, **arguments)["code"] == "NOT_CONFIGURED"
        assert run.server.client.get("/health").json()["services"]["sources"]["status"] == "off"

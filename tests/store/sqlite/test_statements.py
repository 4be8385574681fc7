"""The named statements as data: every one is explained, used, sound, and keeps tenants apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import apsw
import pytest

from zibaldone.store import statements
from zibaldone.store.open import DATABASE_NAME
from zibaldone.store.sqlite.schema import prepare

PACKAGE = "zibaldone.store.sqlite"
FOLDER = Path(statements.__file__).parent / "sqlite"
FILES = sorted(file.name for file in (FOLDER / "sql").glob("*.sql"))
ALL = {
    f"{file.removesuffix('.sql')}.{name}": sql
    for file in FILES
    for name, sql in statements.load(PACKAGE, file).items()
}

BY_KEY = "goes by the key of a row that a filtered statement gave"
WHOLE_FILE = "the operator's look at the whole file"
OPERATORS = "keys are the operator's, no tenant's"
PIPELINE = "the index pipeline serves all tenants, by storage key; no tool is given it"
BY_MEMORY = "what it brings is masked by namespace, in memory or by the statement beside it"
BESIDE = "what it brings is filtered by the statement beside it"
WHOLE_INDEX = "measures the index itself, as its ranking does; says nothing of a document"
UPKEEP = tuple(
    f"{subject}."
    for subject in (
        *("models", "vector_upkeep", "consistency", "sources", "queue", "term_scheme"),
        "term_steps",
    )
)
OF_A_NAMESPACE = {
    *("sources.visible", "sources.records", "sources.record", "sources.named"),
    *("sources.is_taken", "sources.add", "queue.due", "queue.due_apart"),
}
"""Of the pipeline's, those that are asked for one namespace at a time."""

WITHOUT_NAMESPACE = {
    "documents.insert_body": BY_KEY,
    "documents.replace_body": BY_KEY,
    "revisions.add": BY_KEY,
    "lexical.chunks_with": WHOLE_INDEX,
    "lexical.first_chunks_with": WHOLE_INDEX,
    "lexical.totals": WHOLE_INDEX,
    "lexical.newest_chunk": WHOLE_INDEX,
    "lexical.matching_scan": BESIDE,
    "lexical.matching_keys": BESIDE,
    **{name: PIPELINE for name in ALL if name.startswith("mirrors.") and name != "mirrors.ids"},
    "schedules.all": PIPELINE,
    "schedules.advance": PIPELINE,
    "schedules.remove": PIPELINE,
    "jobs.cancel": BY_KEY,
    "jobs.retry": BY_KEY,
    "chunks.stored": BY_KEY,
    "chunks.insert": BY_KEY,
    "terms.insert": BY_KEY,
    "chunks.move": BY_KEY,
    "chunks.delete": BY_KEY,
    "terms.delete": BY_KEY,
    "chunks.delete_vectors": BY_KEY,
    "documents.put_facets": BY_KEY,
    "documents.delete_facets": BY_KEY,
    "documents.put_tag": BY_KEY,
    "documents.delete_tags": BY_KEY,
    **{name: PIPELINE for name in ALL if name.startswith(UPKEEP) and name not in OF_A_NAMESPACE},
    "sources.definition": BY_KEY,
    **{name: PIPELINE for name in ALL if name.startswith("vector_log.")},
    "vectors.model": BY_MEMORY,
    "vectors.newest_change": BY_MEMORY,
    "vectors.changed_chunks": BY_MEMORY,
    "vectors.vectors_page": BY_MEMORY,
    "vectors.some_vectors": BY_MEMORY,
    "vectors.tagged": BY_MEMORY,
    "vectors.tags_given": "only a number is read",
    "usage.all": OPERATORS,
    "api_keys.all": OPERATORS,
    "api_keys.revoke": OPERATORS,
    "api_keys.delete": OPERATORS,
    **{name: WHOLE_FILE for name in ALL if name.startswith("check.")},
}
"""Statements without the tenant filter, each reviewed; one that is not here must carry it."""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = tmp_path_factory.mktemp("statements") / DATABASE_NAME
    prepare(path, 5)
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


def parameters(sql: str) -> dict[str, None]:
    return dict.fromkeys(re.findall(r":([a-z_]+)", sql))


def plan(connection: apsw.Connection, name: str) -> str:
    sql = ALL[name]
    rows = connection.execute("EXPLAIN QUERY PLAN " + sql, parameters(sql))
    return "\n".join(str(row[3]) for row in rows)


def test_statements_without_the_tenant_filter_are_the_reviewed_ones() -> None:
    without = {name for name, sql in ALL.items() if ":namespace" not in sql}
    assert without == set(WITHOUT_NAMESPACE)


def test_what_touches_documents_or_the_audit_trail_carries_the_tenant_filter() -> None:
    for name, sql in ALL.items():
        touches = re.search(r"\b(FROM|JOIN|INTO|UPDATE)\s+(documents|audit)\b", sql)
        if touches and WITHOUT_NAMESPACE.get(name) not in (WHOLE_FILE, PIPELINE, BY_MEMORY):
            is_insert = sql.startswith("INSERT")
            assert is_insert or re.search(r"\bnamespace = :namespace\b", sql), name


def test_what_reads_documents_or_the_audit_trail_stays_within_the_callers_folder() -> None:
    for name, sql in ALL.items():
        touches = re.search(r"\b(FROM|JOIN)\s+(documents|audit)\b", sql)
        if sql.startswith("SELECT") and ":namespace" in sql and touches:
            assert re.search(r"document_id >= :(tenant_)?start\b", sql), name
            if not name.endswith("_open"):
                assert re.search(r"document_id < (coalesce\()?:(tenant_)?end\b", sql), name


@pytest.mark.parametrize("file", FILES)
def test_every_statement_says_what_it_is_for(file: str) -> None:
    text = (FOLDER / "sql" / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("-- name:"):
            purpose = lines[number + 1]
            assert re.fullmatch(r"-- [A-Z].{8,}[.]", purpose), f"{line}: {purpose!r}"
    assert len(re.findall("-- name:", text)) == len(statements.load(PACKAGE, file))


@pytest.mark.parametrize("file", FILES)
def test_every_statement_is_used_by_the_module_that_loads_it(file: str) -> None:
    modules = [m for m in FOLDER.glob("*.py") if f'"{file}"' in m.read_text(encoding="utf-8")]
    assert len(modules) == 1, "one module owns a file of statements"
    tree = ast.parse(modules[0].read_text(encoding="utf-8"))
    words = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    spoken = words | {a + b for a, b in product(words, {"_open"} & words)}
    assert set(statements.load(PACKAGE, file)) <= spoken


@pytest.mark.parametrize("name", ALL)
def test_every_statement_suits_the_schema(fresh: apsw.Connection, name: str) -> None:
    sql = ALL[name]
    assert list(fresh.execute("EXPLAIN " + sql, parameters(sql)))


def test_a_statement_that_does_not_suit_the_schema_would_be_found(fresh: apsw.Connection) -> None:
    with pytest.raises(apsw.SQLError):
        fresh.execute("EXPLAIN SELECT nothing FROM documents")


@pytest.mark.requirement("000/IX.04", "000/R2", "000/R3")
@pytest.mark.parametrize(
    "name",
    [name for name in ALL if name.startswith(("documents.heads", "documents.id_at_offset"))],
)
def test_lists_walk_the_index_of_live_ids_in_its_own_order(
    fresh: apsw.Connection, name: str
) -> None:
    found = plan(fresh, name)
    assert "SEARCH documents USING INDEX documents_live (namespace=? AND document_id>?" in found
    if not name.endswith("_open"):
        assert "document_id<?" in found
    assert "TEMP B-TREE" not in found
    assert "SCAN" not in found


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("documents.listing")])
def test_a_listing_walks_the_same_index_and_sorts_nothing(
    fresh: apsw.Connection, name: str
) -> None:
    """json_group_array keeps the order in which rows come, so they have to come in order."""
    found = plan(fresh, name)
    assert found.count("SEARCH documents USING INDEX documents_live (namespace=? AND document") == 2
    assert "SCAN documents" not in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in ALL
        if n.startswith(tuple(f"documents.{w}" for w in ("heads", "listing", "id_at")))
    ],
)
def test_a_list_has_one_lower_bound(name: str) -> None:
    """Of two, SQLite seeks to one and reads through to the other: a page far down costs more."""
    assert len(re.findall(r"document_id >=? :", ALL[name])) == 1


def test_skipping_to_an_offset_reads_no_rows(fresh: apsw.Connection) -> None:
    """The plan seeks into the table, but nothing of the table is asked for: only of the index."""
    for name in ("documents.id_at_offset", "documents.id_at_offset_open"):
        sql = ALL[name]
        program = list(fresh.execute("EXPLAIN " + sql, parameters(sql)))
        table = next(step[2] for step in program if step[1] == "OpenRead")
        read = {step[2] for step in program if step[1] == "Column"}
        assert read
        assert table not in read


KEYS = re.compile("SCAN (json_each|[a-z]) VIRTUAL TABLE INDEX 1:")


@pytest.mark.parametrize(
    "name",
    [
        *("chunks.views", "chunks.views_at", "chunks.documents_of", "vectors.some_vectors"),
        *("vectors.visible", "vectors.identified"),
        *("sources.texts", "vector_upkeep.states", "vector_upkeep.put"),
    ],
)
def test_what_goes_by_a_list_of_keys_begins_with_it(fresh: apsw.Connection, name: str) -> None:
    """Otherwise it would walk everything there is and look each row up in the list."""
    first, *others = plan(fresh, name).splitlines()
    assert KEYS.fullmatch(first)
    assert others
    assert all(re.match(r"SEARCH \w USING |USE TEMP B-TREE FOR DISTINCT", step) for step in others)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "vectors.coverage",
            "SEARCH d USING INDEX documents_without_vectors (namespace=? AND document_id>?",
        ),
        ("vectors.newest_change", "SEARCH vector_changes"),
        ("vectors.vectors_page", "SEARCH v USING PRIMARY KEY (model_id=? AND chunk_key>?"),
        ("consistency.lag", "SEARCH documents USING INDEX documents_unready (vector_status=?)"),
        ("consistency.lag", "SEARCH jobs USING INDEX jobs_queued (kind=?)"),
        (
            "consistency.unqueued_page",
            "SEARCH j USING INDEX jobs_by_subject (kind=? AND subject=? AND namespace=?)",
        ),
        ("queue.has_due", "SEARCH jobs USING INDEX jobs_queued_apart (kind=?)"),
        ("queue.has_abandoned", "SEARCH jobs USING COVERING INDEX jobs_running (kind=?"),
        ("consistency.unqueued_page", "SEARCH d USING INTEGER PRIMARY KEY (rowid>?)"),
        ("vector_upkeep.lacking_page", "SEARCH d USING INTEGER PRIMARY KEY (rowid>?)"),
        ("sources.definition", "SEARCH sources USING INTEGER PRIMARY KEY (rowid=?)"),
        ("sources.stale", "SEARCH d USING INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
def test_what_is_asked_often_or_of_much_walks_no_more_than_it_must(
    fresh: apsw.Connection, name: str, expected: str
) -> None:
    found = plan(fresh, name)
    assert expected in found
    assert not re.search(r"SCAN (documents|d|chunks|c|vectors|v|vector_changes)\b", found)
    assert "TEMP B-TREE" not in found


def test_leasing_takes_the_head_of_the_queue_without_sorting_it(fresh: apsw.Connection) -> None:
    found = plan(fresh, "queue.due_apart")
    assert "TEMP B-TREE" not in found
    assert "SEARCH o USING INDEX jobs_queued_apart (kind=? AND namespace=?)" in found
    assert "SEARCH l USING INDEX jobs_by_subject (kind=? AND subject=? AND namespace=?)" in found


@pytest.mark.parametrize(
    ("name", "table"),
    [
        *((f"queue.{name}", "jobs") for name in ("set_back", "park", "forget", "take", "renew")),
        *((f"vector_upkeep.{name}", "documents") for name in ("set_ready", "set_error")),
        *((name, "documents") for name in ("vector_upkeep.set_pending", "sources.set_cut")),
    ],
)
def test_what_is_written_for_a_set_goes_by_its_keys(
    fresh: apsw.Connection, name: str, table: str
) -> None:
    found = plan(fresh, name)
    assert f"SEARCH {table} USING INTEGER PRIMARY KEY (rowid=?)" in found
    assert f"SCAN {table}" not in found
    assert f"SEARCH {table} USING INDEX" not in found


def test_other_reads_use_an_index_and_do_not_sort(fresh: apsw.Connection) -> None:
    for name in ("documents.get", "revisions.page", "revisions.get", "audit.page_of_document"):
        found = plan(fresh, name)
        assert "SCAN" not in found, name
        assert "TEMP B-TREE" not in found, name
    assert "documents_recent (namespace=? AND updated_at_us>?" in plan(fresh, "documents.recent")
    for name in ("audit.page", "lexical.search", "documents.recent"):
        assert "TEMP B-TREE" not in plan(fresh, name), name


def test_a_name_that_stands_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "twice" / "sql").mkdir(parents=True)
    (tmp_path / "twice" / "__init__.py").touch()
    text = "-- name: a\n-- One.\nSELECT 1;\n\n-- name: a\n-- Two.\nSELECT 2;\n"
    (tmp_path / "twice" / "sql" / "x.sql").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="a is there twice"):
        statements.load("twice", "x.sql")


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("queue.due", "jobs_queued_apart (kind=? AND namespace=?)"),
        ("queue.due_apart", "jobs_queued_apart (kind=? AND namespace=?)"),
        ("queue.queued_namespaces", "jobs_queued_apart (kind=? AND namespace>?)"),
        ("queue.has_due", "jobs_queued_apart (kind=?)"),
        ("queue.has_abandoned", "jobs_running (kind=?)"),
        ("queue.due_apart", "jobs_by_subject (kind=? AND subject=? AND namespace=?)"),
        ("queue.take_subjects", "jobs_by_subject (kind=? AND subject=? AND namespace=?)"),
        ("queue.forget_ended", "jobs_by_subject (kind=? AND subject=? AND namespace=?)"),
        ("jobs.get", "(namespace=? AND job_id=?)"),
        ("jobs.page", "(namespace=? AND job_id<?)"),
        ("jobs.page_ended", "jobs_ended_ids (namespace=? AND state=? AND job_id<?)"),
        ("queue.purge", "jobs_ended (state=? AND kind=? AND finished_at_us<?)"),
    ],
)
def test_the_queue_is_asked_by_its_indexes_in_their_own_order(
    fresh: apsw.Connection, name: str, index: str
) -> None:
    """However much is queued: a lease or a page looks at what it takes, not at all there is."""
    found = plan(fresh, name)
    assert index in found
    assert "TEMP B-TREE" not in found
    assert "SCAN jobs" not in found

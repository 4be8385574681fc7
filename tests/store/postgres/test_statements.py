"""The named statements as data: each is explained, used, qualified, and keeps tenants apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.drivers.postgres import databases
from zibaldone.store import statements

PACKAGE = "zibaldone.store.postgres"
FOLDER = Path(statements.__file__).parent / "postgres"
FILES = sorted(file.name for file in (FOLDER / "sql").glob("*.sql"))
ALL = {
    f"{file.removesuffix('.sql')}.{name}": sql
    for file in FILES
    for name, sql in statements.load(PACKAGE, file).items()
}

BY_KEY = "goes by the key of a row that a filtered statement gave"
WHOLE_DATABASE = "the operator's look at everything"
OPERATORS = "keys and usage are the operator's, no tenant's"
PIPELINE = "upkeep serves all tenants, by storage key; no tool is given it"
UPKEEP = tuple(
    f"{subject}."
    for subject in (
        "models", "consistency", "sources", "queue", "fold", "postings", "vector_upkeep",
        "vector_indexes", "term_scheme",
    )
)  # fmt: skip
OF_A_NAMESPACE = {
    "sources.visible",
    "sources.records",
    "sources.record",
    "sources.named",
    "sources.is_taken",
    "sources.add",
    "queue.due",
    "queue.due_apart",
    "postings.stale_segment",
    "postings.forget_waste",
}
"""Of the pipeline's, those that are asked for one namespace at a time."""

WITHOUT_NAMESPACE = {
    **{name: PIPELINE for name in ALL if name.startswith(UPKEEP) and name not in OF_A_NAMESPACE},
    **{name: WHOLE_DATABASE for name in ALL if name.startswith("check.")},
    "queue.forget_ended": PIPELINE,
    "sources.definition": BY_KEY,
    **{name: PIPELINE for name in ALL if name.startswith("mirrors.") and name != "mirrors.ids"},
    "schedules.all": PIPELINE,
    "schedules.advance": PIPELINE,
    "schedules.remove": PIPELINE,
    "jobs.cancel": BY_KEY,
    "jobs.retry": BY_KEY,
    "chunks.stored": BY_KEY,
    "chunks.insert": BY_KEY,
    "chunks.move": BY_KEY,
    "chunks.delete": BY_KEY,
    "chunks.delete_vectors": BY_KEY,
    "locks.documents": BY_KEY,
    "locks.source": BY_KEY,
    "locks.source_alone": PIPELINE,
    "locks.source_names": PIPELINE,
    "locks.leases": PIPELINE,
    "locks.models": PIPELINE,
    "locks.try_folding": PIPELINE,
    "locks.try_posting": PIPELINE,
    "terms.add": BY_KEY,
    "terms.remove": BY_KEY,
    "usage.all": OPERATORS,
    "api_keys.all": OPERATORS,
    "api_keys.revoke": OPERATORS,
    "api_keys.delete": OPERATORS,
}
"""Statements without the tenant filter, each reviewed; one that is not here must carry it."""

_NAMED = re.compile(r"%\((\w+)\)s")


def numbered(sql: str) -> str:
    """With $1, $2 … as the server sees it."""
    names = list(dict.fromkeys(_NAMED.findall(sql)))
    return _NAMED.sub(lambda match: f"${names.index(match[1]) + 1}", sql)


@pytest.fixture(scope="module")
def fresh() -> Iterator[psycopg.Connection]:
    name = databases().create()
    with psycopg.connect(databases().url(name), autocommit=True) as connection:
        yield connection
    databases().drop(name)


def plan(connection: psycopg.Connection, sql: str) -> Any:
    explain = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered(sql)}"
    row = connection.execute(explain.encode()).fetchone()
    assert row is not None
    return row[0][0]["Plan"]


def test_statements_without_the_tenant_filter_are_the_reviewed_ones() -> None:
    without = {name for name, sql in ALL.items() if "%(namespace)s" not in sql}
    assert without == set(WITHOUT_NAMESPACE)


def test_what_touches_documents_or_the_audit_trail_carries_the_tenant_filter() -> None:
    for name, sql in ALL.items():
        touches = re.search(r"\b(FROM|JOIN|INTO|UPDATE)\s+zibaldone\.(documents|audit)\b", sql)
        if touches and name not in WITHOUT_NAMESPACE:
            is_insert = sql.startswith("INSERT")
            assert is_insert or re.search(r"\bnamespace = %\(namespace\)s", sql), name


def test_what_reads_documents_or_the_audit_trail_stays_within_the_callers_folder() -> None:
    for name, sql in ALL.items():
        touches = re.search(r"\b(FROM|JOIN)\s+zibaldone\.(documents|audit)\b", sql)
        if sql.startswith("SELECT") and "%(namespace)s" in sql and touches:
            assert re.search(r"document_id >= %\((tenant_)?start\)s", sql), name
            if not name.endswith("_open"):
                assert re.search(r"document_id < %\((tenant_)?end\)s", sql), name


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
def test_every_statement_suits_the_schema(fresh: psycopg.Connection, name: str) -> None:
    assert plan(fresh, ALL[name])


def test_no_statement_depends_on_the_search_path(fresh: psycopg.Connection) -> None:
    """Behind a pooler nothing that was set for a session holds."""
    fresh.execute("SET search_path = pg_temp")
    try:
        for sql in ALL.values():
            assert plan(fresh, sql)
    finally:
        fresh.execute("RESET search_path")


def test_a_statement_that_does_not_suit_the_schema_would_be_found(
    fresh: psycopg.Connection,
) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn):
        plan(fresh, "SELECT nothing FROM zibaldone.documents")

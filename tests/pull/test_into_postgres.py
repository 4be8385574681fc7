"""import agent-data with PostgreSQL on both sides: the table of AgentData, and our store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result
from psycopg.conninfo import conninfo_to_dict

from tests.drivers import corpus
from tests.drivers.commands import Commands
from tests.drivers.postgres import Databases, PostgresServer
from tests.pull.test_agent_data import COUNTS, counts, fill, write_lines

DELETED = corpus.ROWS - len(corpus.alive_ids()) - 1


class StoreCommands(Commands):
    """The command line with a store elsewhere than in the data folder."""

    def __init__(self, data: Path, url: str) -> None:
        super().__init__(data)
        self.url = url

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        return super().__call__("--store", self.url, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def databases(postgres: PostgresServer) -> Databases:
    return Databases(postgres.url)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """The corpus in the embedded store, from a file: what all others are compared with."""
    folder = tmp_path_factory.mktemp("embedded")
    cli = Commands(folder / "data")
    dump = write_lines(folder / "kb.jsonl", corpus.agent_data_rows())
    assert counts(cli.json("import", "agent-data", dump, "--no-vectors")) == (
        corpus.LISTED,
        0,
        0,
        1,
        0,
    )
    return cli


@pytest.fixture
def target(databases: Databases, tmp_path: Path) -> Iterator[StoreCommands]:
    """An empty store on PostgreSQL."""
    name = databases.create()
    yield StoreCommands(tmp_path / "data", databases.url(name))
    databases.drop(name)


def sample(cli: Commands) -> list[Any]:
    """Every 97th document with its text and history, and the probes whose ids have `_` or `%`."""
    ids = cli.ids()
    chosen = [*ids[::97], *(one for probes in corpus.PROBES.values() for one in probes)]
    return [(cli.json("get", one), cli.json("history", one)) for one in chosen]


def has_all(target: Commands, embedded: Commands) -> None:
    assert target.ids() == corpus.alive_ids()
    assert target.ok("ls", "--all", "--json") == embedded.ok("ls", "--all", "--json")
    assert sample(target) == sample(embedded)
    for prefix in ("", *corpus.PROBES, "knowledge/", " "):
        listed = target.ok("ls", prefix, "--all").splitlines()
        assert listed == [one for one in corpus.alive_ids() if one.startswith(prefix)]
    checked = target("doctor", "--thorough")
    assert checked.exit_code == 0, checked.output


def a_part() -> list[dict[str, Any]]:
    """Every tenth row, the junk row, and those with awkward ids."""
    awkward = {one for probes in corpus.PROBES.values() for one in probes} | {""}
    return [
        row
        for number, row in enumerate(corpus.agent_data_rows())
        if number % 10 == 0 or row["data"]["document_id"] in awkward
    ]


@pytest.mark.parametrize("form", ["table", "file"])
def test_from_a_table_of_another_database_and_from_a_file(
    form: str, target: StoreCommands, postgres: PostgresServer, tmp_path: Path
) -> None:
    rows = a_part()
    if form == "table":
        source = postgres.database("kb_elsewhere")
        fill(source, rows)
    else:
        source = write_lines(tmp_path / "kb.jsonl", rows)
    live = sorted(
        (row["data"]["document_id"].encode(), row["data"]["revision"])
        for row in rows
        if not row["data"].get("deleted_at") and row["data"]["document_id"]
    )
    answer = target.json("import", "agent-data", source, "--no-vectors")
    assert counts(answer) == (len(live), 0, 0, 1, 0)
    assert [problem["reason"] for problem in answer["problems"]] == ["no document_id"]
    items = target.json("ls", "--all")["items"]
    assert [(item["document_id"].encode(), item["revision"]) for item in items] == live
    assert counts(target.json("import", "agent-data", source, "--no-vectors")) == (
        0,
        0,
        len(live),
        1,
        0,
    )


@pytest.mark.requirement("T15", "000/D1.02")
def test_from_a_table_beside_the_store(
    target: StoreCommands, embedded: Commands, databases: Databases
) -> None:
    """One database has both, as where AgentData's server is taken over. The deleted come too."""
    name = str(conninfo_to_dict(target.url)["dbname"])
    fill(databases.admin_url(name), corpus.agent_data_rows())
    with psycopg.connect(databases.admin_url(name)) as connection:
        connection.execute("GRANT SELECT ON kb_documents TO PUBLIC")
    answer = target.json("import", "agent-data", target.url, "--with-deleted", "--no-vectors")
    made = corpus.LISTED + DELETED
    assert counts(answer) == (made, 0, 0, 1, 0)
    has_all(target, embedded)
    again = target.json("import", "agent-data", target.url, "--with-deleted", "--no-vectors")
    assert counts(again) == (0, 0, made, 1, 0)
    with psycopg.connect(databases.admin_url(name)) as connection:
        kept = connection.execute("SELECT count(*) FROM kb_documents").fetchone()
        assert kept == (corpus.ROWS,)


def test_a_deleted_document_stays_deleted_and_can_be_restored(
    target: StoreCommands, tmp_path: Path
) -> None:
    """Each twin has the id of nobody else: its live sister has another one."""
    dead = next(
        one
        for one in corpus.agent_data_rows()
        if one["data"].get("deleted_at") and one["data"]["document_id"]
    )
    file = write_lines(tmp_path / "kb.jsonl", [dead])
    assert (
        target.json("import", "agent-data", file, "--with-deleted", "--no-vectors")["created"] == 1
    )
    document_id = dead["data"]["document_id"]
    assert target.ids() == []
    assert target.error("get", document_id) == (4, "NOT_FOUND")
    target.ok("restore", document_id, str(dead["data"]["revision"]))
    assert target.ids() == [document_id]


def test_rows_that_do_not_fit_are_told_and_the_others_come(
    target: StoreCommands, postgres: PostgresServer
) -> None:
    source = postgres.database("kb_odd")
    rows: list[dict[str, Any]] = [
        {"key": "a", "data": {"document_id": "a", "content": "x", "revision": ""}},
        {"key": "bad", "data": {"document_id": "../etc", "content": "x"}},
        {"key": "", "data": {"document_id": "", "content": "junk"}},
        {"key": "list", "data": []},
        {"key": "b_%\\", "data": {"document_id": "b_%\\", "content": {"body": "y"}}},
    ]
    fill(source, rows)
    answer = target.json("import", "agent-data", source, "--no-vectors")
    assert dict(zip(COUNTS, counts(answer), strict=True)) == {
        "created": 2,
        "updated": 0,
        "unchanged": 0,
        "skipped": 1,
        "failed": 2,
    }
    assert target.ids() == ["a", "b_%\\"]
    assert json.loads(target.ok("get", "a", "--json"))["revision"] == 0

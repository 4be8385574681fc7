"""From nothing to a found edit, on each kind of database, with commands and a running server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.pulled import pulling
from tests.drivers.server import Server, run_cli
from tests.pull.databases import DATABASES, Database

PATIENCE_SECONDS = 40.0


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = DATABASES[request.param](tmp_path)
    made.execute(
        'CREATE TABLE "articles" ("id" INTEGER PRIMARY KEY, "title" VARCHAR(100), "body" TEXT,'
        ' "price" NUMERIC(8, 2))'
    )
    made.many(
        'INSERT INTO "articles" VALUES (%s, %s, %s, %s)',
        [(1, "Jacket", "keeps you dry", 89.5), (2, "Torch", "for walking at night", 34)],
    )
    yield made
    made.close()


def found(server: Server, word: str) -> list[str]:
    results = server.client.get("/search", params={"query": word}).json()["results"]
    return [hit["document_id"] for hit in results]


def wait_for(server: Server, word: str, wanted: list[str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while found(server, word) != wanted:
        assert time.monotonic() < deadline_s, server.log()
        time.sleep(0.1)


def test_a_table_is_followed(database: Database, tmp_path: Path) -> None:
    environment = {"ZIBALDONE_EMBEDDER": "none"}
    with pulling(tmp_path, "", environment) as run:

        def command(*arguments: str) -> Any:
            answered = run_cli("sources", *arguments, "--json", data=run.server.data)
            assert answered.returncode == 0, answered.stdout + answered.stderr
            return json.loads(answered.stdout)

        added = command(
            *("add", database.url, "articles", "--yes", "--live", "--poll", "0.5"),
        )
        assert added["definition"]["key"] == ["id"]
        assert added["documents"][0]["document_id"] == "articles:1"
        wait_for(run.server, "dry", ["articles:1"])
        rows = run.rag.call("rag.fetch_from_source", doc_ids=["articles:1", "articles:2"])["rows"]
        assert [row["row"]["price"] for row in rows] == [89.5, 34]
        mode = "polling"
        if trigger := command("show", "articles")["trigger"]:
            mode = "listening"
            database.execute(trigger)
        else:
            refused = run_cli("sources", "show", "articles", "--trigger", data=run.server.data)
            assert "Only PostgreSQL notifies" in refused.stderr
        database.execute('UPDATE "articles" SET "body" = \'an okapi\', "price" = 1 WHERE "id" = 2')
        wait_for(run.server, "okapi", ["articles:2"])
        (row,) = run.rag.call("rag.fetch_from_source", doc_ids=["articles:2"], columns=["price"])[
            "rows"
        ]
        assert row["row"] == {"price": 1}
        database.execute('DELETE FROM "articles" WHERE "id" = 1')
        wait_for(run.server, "dry", [])
        (health,) = run.server.client.get("/health").json()["services"]["sources"]["sources"]
        assert (health["mode"], health["problem"], health["is_late"]) == (mode, None, False)
        command("disable", "articles")
        wait_for(run.server, "okapi", [])
        assert command("remove", "articles")["documents"] == 1


def test_a_live_source_says_what_it_waits_for(database: Database, tmp_path: Path) -> None:
    add = ("sources", "add", database.url, "articles", "--yes", "--live")
    said = [
        run_cli(*add, "--name", "one", data=tmp_path / "data").stdout,
        run_cli(*add, "--name", "two", "--poll", "9", data=tmp_path / "data").stdout,
    ]
    is_postgresql = database.url.startswith("postgres")
    assert ["--trigger" in text for text in said] == [is_postgresql, False]

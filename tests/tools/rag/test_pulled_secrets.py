"""Whose sources they are: other namespaces see nothing of them, and nobody sees a password."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.postgres import PostgresServer
from tests.drivers.pulled import EVERYWHERE, Pulling, make_posts, posts_toml, pulling
from tests.drivers.rag import SEARCHES, asking
from tests.drivers.server import run_cli

PASSWORD = "sesame/open:you@once"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a PostgreSQL database that needs a password, without the password."""
    with PostgresServer(passwords=True) as server:
        admin = server.database("shop")
        with psycopg.connect(admin, autocommit=True) as raw:
            raw.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
            raw.execute("CREATE TABLE items (id int PRIMARY KEY, body text)")
            raw.execute("INSERT INTO items VALUES (1, 'a lamp')")
            raw.execute("GRANT SELECT ON items TO reader")
        folder = admin.partition("host=")[2]
        yield f"postgresql://reader:${{SHOP_PASSWORD}}@/shop?host={folder}"


def items_toml(url: str) -> str:
    return (
        f'[sources.items]\nurl = "{url}"\ntable = "items"\nkey = "id"\nnamespace = "team"\n'
        '[sources.items.document]\nbody = "body"\n'
    )


def test_a_source_is_seen_in_its_namespace_only(tmp_path: Path) -> None:
    file = tmp_path / "posts.db"
    make_posts(file)
    with pulling(tmp_path, posts_toml(file, namespace="team")) as run:
        keys = {name: _key(run, name) for name in ("team", "other")}
        team = Mcp(run.server.client, "/mcp-rag", headers=keys["team"])
        other = Mcp(run.server.client, "/mcp-rag", headers=keys["other"])
        job_id = team.call("rag.admin.sync")["job_id"]
        _wait(run, job_id, keys["team"])
        assert len(team.call("rag.search_fts", query=EVERYWHERE)["results"]) == 10
        for tool in SEARCHES:
            if tool != "rag.search_vector":
                assert other.call(tool, **asking(tool, EVERYWHERE))["results"] == []
            named = asking(tool, EVERYWHERE, filters={"source_names": ["posts"]})
            assert other.failure(tool, **named)["code"] == "INVALID_ARGUMENT"
            assert "posts" not in other.failure(tool, **named)["details"]["sources"]
        assert other.call("rag.get_docs", doc_ids=["posts:1"])["missing"] == ["posts:1"]
        assert [s["source_name"] for s in other.call("rag.admin.stats")["sources"]] == ["kb"]
        failure = other.failure("rag.fetch_from_source", doc_ids=["posts:1"])
        assert failure["code"] == "NOT_CONFIGURED"
        failure = other.failure("rag.admin.sync", source_names=["posts"])
        assert failure["code"] == "NOT_CONFIGURED"
        for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/cancel"):
            method = "POST" if path.endswith("cancel") else "GET"
            answer = run.server.client.request(method, path, headers=keys["other"])
            assert answer.status_code == 404
        jobs = run.server.client.get("/jobs?kind=sync", headers=keys["other"]).json()["jobs"]
        assert jobs == []
        # A key for a folder of the namespace sees what is in the folder, and syncs nothing.
        folder = Mcp(run.server.client, "/mcp-rag", headers=_key(run, "team", "--prefix", "docs"))
        assert folder.call("rag.fetch_from_source", doc_ids=["posts:1"])["missing"] == ["posts:1"]
        assert folder.failure("rag.admin.sync")["code"] == "FORBIDDEN"
        reader = Mcp(run.server.client, "/mcp-rag", headers=_key(run, "team", "--effect", "read"))
        assert reader.failure("rag.admin.sync")["code"] == "FORBIDDEN"
        assert len(reader.call("rag.fetch_from_source", doc_ids=["posts:1"])["rows"]) == 1


def test_a_password_reaches_no_answer_and_no_log(tmp_path: Path, database: str) -> None:
    secret = {"SHOP_PASSWORD": PASSWORD, "ZIBALDONE_LOG_LEVEL": "debug"}
    said: list[str] = []
    with pulling(tmp_path, items_toml(database), secret) as run:
        headers = _key(run, "team")
        team = Mcp(run.server.client, "/mcp-rag", headers=headers)
        job = _wait(run, team.call("rag.admin.sync")["job_id"], headers)
        assert (job["state"], job["result"]["created"]) == ("done", 1)
        row = team.call("rag.fetch_from_source", doc_ids=["items:1"])["rows"][0]["row"]
        assert row == {"id": 1, "body": "a lamp"}
        said += [str(job), str(team.outcome("rag.admin.stats", {}))]
        given = {"ZIBALDONE_CONFIG": str(run.config), **secret}
        for command in (
            ("sources", "show", "items"),
            ("sources", "show", "items", "--json"),
            ("sources", "test", "items"),
            ("sources", "preview", "items"),
            ("sources", "list", "--json"),
        ):
            answered = run_cli(*command, data=run.server.data, environment=given)
            assert answered.returncode == 0, answered.stderr
            said += [answered.stdout, answered.stderr]
        ((stored,),) = run.backend.query("SELECT definition FROM sources WHERE name = 'items'")
        said.append(str(stored))
        assert "${SHOP_PASSWORD}" in str(stored)
        # A wrong password, a missing one and a server that is away.
        for url, environment in (
            (database, {"SHOP_PASSWORD": "wrong-sesame"}),
            (database, {}),
            ("mysql://root:${SHOP_PASSWORD}@127.0.0.1:1/shop", secret),
            ("postgresql://root:${SHOP_PASSWORD}@127.0.0.1:1/shop", secret),
        ):
            for options in ((), ("--json",)):
                answered = run_cli(
                    *("sources", "add", url, "items", "--yes", *options),
                    data=run.server.data,
                    environment={**given, "SHOP_PASSWORD": "", **environment},
                )
                assert answered.returncode in (3, 7), (url, answered.stdout, answered.stderr)
                said += [answered.stdout, answered.stderr]
        said += [run.server.client.get("/health", headers=headers).text, run.server.log()]
    for text in said:
        assert PASSWORD not in text
        assert "sesame" not in text, text
        assert "sesame%2Fopen" not in text


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:sesame@127.0.0.1/shop",
        "postgresql://127.0.0.1/shop?user=root&password=sesame",
        "mariadb+pymysql://root:sesame@127.0.0.1/shop",
    ],
)
def test_a_password_in_clear_is_refused_without_being_repeated(tmp_path: Path, url: str) -> None:
    answered = run_cli("sources", "add", url, "items", "--yes", data=tmp_path / "data")
    assert answered.returncode == 3
    assert "${POSTS_PASSWORD}" in answered.stderr
    assert "sesame" not in answered.stdout + answered.stderr
    config = tmp_path / "zibaldone.toml"
    config.write_text(items_toml(url))
    given = {"ZIBALDONE_CONFIG": str(config)}
    answered = run_cli("sources", data=tmp_path / "data", environment=given)
    assert answered.returncode == 2
    assert "sources.items" in answered.stderr
    assert "sesame" not in answered.stdout + answered.stderr


def _key(run: Pulling, namespace: str, *options: str) -> dict[str, str]:
    """An API key, made as an operator makes it."""
    if "--effect" not in options:
        options = (*options, "--effect", "read", "--effect", "write", "--effect", "admin")
    made = run_cli(
        *("key", "create", "--json", "--namespace", namespace, *options),
        data=run.server.data,
    )
    assert made.returncode == 0, made.stderr
    return {"x-api-key": json.loads(made.stdout)["secret"]}


def _wait(run: Pulling, job_id: str, headers: dict[str, str]) -> dict[str, Any]:
    deadline_s = time.monotonic() + 60
    while True:
        job: dict[str, Any] = run.server.client.get(f"/jobs/{job_id}", headers=headers).json()
        if job["state"] not in ("queued", "running"):
            return job
        assert time.monotonic() < deadline_s, job
        time.sleep(0.05)

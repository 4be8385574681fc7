"""zibaldone sources: add, sync, show, test, preview, disable, enable, remove; and the settings."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.pulled import ROWS, connected, make_posts, posts_toml
from tests.drivers.server import COMMAND, Server, clean_environment, run_cli

COUNTS = ("created", "updated", "deleted", "unchanged", "failed")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "shop.db"
    make_posts(made)
    return made


def counts(outcome: dict[str, Any]) -> dict[str, int]:
    return {name: outcome[name] for name in COUNTS if outcome[name]}


def synced(cli: Commands, *arguments: str) -> dict[str, int]:
    (outcome,) = cli.json("sources", "sync", *arguments)["sources"]
    assert outcome["state"] == "done", outcome
    return counts(outcome)


def test_from_a_table_to_its_documents_and_back(cli: Commands, file: Path) -> None:
    shown = cli.ok("sources", "add", str(file), "posts", "--dry-run")
    lines = shown.splitlines()
    assert [line.split() for line in lines[:6]] == [
        ["name", "posts"],
        ["database", f"sqlite:///{file}"],
        ["table", "posts"],
        ["key", "Id"],
        ["title", "Title"],
        ["body", "Body"],
    ]
    assert sum(line.startswith("--- posts:") for line in lines) == 3
    assert lines[-1] == "Nothing was saved."
    cli.ok("key", "create")  # makes the store, and nothing in it that is listed
    assert [source["source"] for source in cli.json("sources")["sources"]] == ["kb"]
    saved = cli.ok("sources", "add", str(file), "posts", "--name", "blog", "--yes")
    assert saved.splitlines()[-1] == (
        "Saved as blog. To read its rows: zibaldone sources sync blog"
    )
    assert cli.ok("sources", "sync") == (
        f"blog: {ROWS} created, 0 updated, 0 deleted, 0 unchanged, 0 failed\n"
    )
    assert synced(cli, "blog") == {"unchanged": ROWS}
    assert len(cli.ids()) == ROWS
    assert "blog:7" in cli.ok("search", "n7")
    with connected(file) as raw:
        raw.execute("UPDATE posts SET Body = 'wombat', UpdatedAt = '2025-01-01' WHERE Id = 7")
        raw.execute("DELETE FROM posts WHERE Id = 8")
    assert synced(cli) == {"updated": 1, "deleted": 1, "unchanged": ROWS - 2}
    assert "wombat" in cli.ok("search", "wombat")
    with connected(file) as raw:  # its watermark does not tell
        raw.execute("UPDATE posts SET Body = 'numbat' WHERE Id = 9")
    assert synced(cli) == {"unchanged": ROWS - 1}
    assert synced(cli, "blog", "--full") == {"updated": 1, "unchanged": ROWS - 2}
    details = cli.json("sources", "show", "blog")
    assert (details["documents"], details["enabled"], details["origin"]) == (
        ROWS - 1, True, "command",
    )  # fmt: skip
    assert details["last_sync"] is not None
    assert counts(details["last_job"]["result"]) == {"updated": 1, "unchanged": ROWS - 2}
    assert "last job" in cli.ok("sources", "show", "blog")
    assert cli.ok("sources", "test", "blog") == "blog: the definition fits the table\n"
    previewed = cli.json("sources", "preview", "blog", "--rows", "2")["documents"]
    assert [row["document_id"] for row in previewed] == ["blog:1", "blog:2"]
    assert cli.ok("sources", "disable", "blog") == "blog is disabled\n"
    assert cli.ok("search", "wombat") == ""
    assert cli.error("sources", "sync", "blog") == (5, "CONFLICT")
    assert cli.error("sources", "sync") == (4, "NOT_FOUND")
    assert "pulled (disabled)" in cli.ok("sources", "list")
    assert cli.json("sources", "enable", "blog")["enabled"] is True
    assert "wombat" in cli.ok("search", "wombat")
    assert cli.json("sources", "remove", "blog")["documents"] == ROWS - 1
    assert cli.ids() == []
    assert [source["source"] for source in cli.json("sources")["sources"]] == ["kb"]
    cli.ok("sources", "add", str(file), "posts", "--name", "blog", "--yes")
    assert synced(cli) == {"created": ROWS - 1}


def test_a_sync_that_would_delete_much_asks_first(cli: Commands, file: Path) -> None:
    cli.ok("sources", "add", str(file), "posts", "--yes")
    synced(cli)
    with connected(file) as raw:
        raw.execute("DELETE FROM posts WHERE Id > 10")
    result = cli("sources", "sync")
    assert result.exit_code == 1
    assert "zibaldone sources sync posts --allow-deletes" in result.stderr
    assert len(cli.ids()) == ROWS
    assert synced(cli, "posts", "--allow-deletes") == {"unchanged": 10, "deleted": ROWS - 10}


def test_the_proposal_can_be_changed_by_options(cli: Commands, file: Path) -> None:
    added = cli.json(
        *("sources", "add", f"sqlite:///{file}", "posts", "--yes", "--name", "shop.posts-1"),
        *("--namespace", "team", "--where", "Score > 0", "--title", "Title", "--title", "Id"),
        *("--body", "Title", "--body", "Body", "--no-watermark", "--created", ""),
        *("--schedule", "*/5 * * * *", "--poll", "7"),
    )
    definition = added["definition"]
    assert (added["saved"], added["namespace"], definition["where"]) == (True, "team", "Score > 0")
    assert definition["document"]["title"] == ["Title", {"text": " "}, "Id"]
    assert definition["document"]["body"] == ["Title", {"text": "\n\n"}, "Body"]
    assert (definition["watermark"], definition["document"]["created"]) == ("", "")
    assert (definition["schedule"], definition["live"]) == ("*/5 * * * *", True)
    assert definition["poll_seconds"] == 7
    cli.ok(
        *("sources", "add", str(file), "--select", "SELECT Id, Body FROM posts WHERE Id < 4"),
        *("--name", "few", "--key", "Id", "--body", "Body", "--yes"),
    )
    outcomes = cli.json("sources", "sync")["sources"]
    assert {(one["source"], one["namespace"]): counts(one)["created"] for one in outcomes} == {
        ("shop.posts-1", "team"): sum(1 for n in range(1, ROWS + 1) if n % 11 and n % 17 > 4),
        ("few", "default"): 3,
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing.db", "posts", "--yes"), (7, "SOURCE_UNAVAILABLE")),
        (("FILE", "post", "--yes"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--body", "Bdoy"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--where", "Nothing > 1"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--schedule", "often"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--name", "kb"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--name", "a b"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--poll", "0.01"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts", "--yes", "--select", "SELECT 1"), (3, "INVALID_ARGUMENT")),
        (("FILE", "posts"), (3, "INVALID_ARGUMENT")),
        (("oracle://host/db", "posts", "--yes"), (3, "INVALID_ARGUMENT")),
        (("sqlite:///${NOT_SET_HERE}", "posts", "--yes"), (3, "INVALID_ARGUMENT")),
        (("sqlite:///$NOT_SET_HERE", "posts", "--yes"), (3, "INVALID_ARGUMENT")),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_saved(
    cli: Commands, file: Path, tmp_path: Path, arguments: tuple[str, ...], code: tuple[int, str]
) -> None:
    given = [str(file) if one == "FILE" else one for one in arguments]
    given[0] = str(tmp_path / "nothing.db") if given[0] == "nothing.db" else given[0]
    assert cli.error("sources", "add", *given) == code
    assert not (cli.data / "zibaldone.db").exists()
    cli.ok("key", "create")  # makes the store, and nothing in it that is listed
    assert [source["source"] for source in cli.json("sources")["sources"]] == ["kb"]


def test_several_problems_are_told_at_once_with_the_nearest_columns(
    cli: Commands, file: Path
) -> None:
    result = cli(
        *("sources", "add", str(file), "posts", "--yes", "--json"),
        *("--body", "Bdoy", "--title", "Titel", "--tags", "Tgas"),
    )
    problems = json.loads(result.stdout)["error"]["details"]["problems"]
    assert len(problems) == 3
    for hint in ("'Body'", "'Title'", "'Tags'"):
        assert any(f"Did you mean {hint}?" in problem for problem in problems)


def test_names_that_are_unknown_or_taken(cli: Commands, file: Path) -> None:
    cli.ok("key", "create")  # makes the store, and nothing in it that is listed
    for command in ("show", "test", "preview", "disable", "enable", "remove", "sync"):
        code = (7, "NOT_CONFIGURED") if command == "sync" else (4, "NOT_FOUND")
        found = cli.error("sources", command, "posts")
        assert found[1] == code[1], command
    cli.ok("sources", "add", str(file), "posts", "--yes")
    assert cli.error("sources", "add", str(file), "posts", "--yes") == (5, "CONFLICT")
    assert cli.error("sources", "sync", "psots") == (4, "NOT_FOUND")
    for name in ("kb", "posts"):
        result = cli("sources", "remove", name, "--json")
        assert (result.exit_code == 0) == (name == "posts")


def test_a_failing_row_is_told_with_its_key(cli: Commands, file: Path) -> None:
    with connected(file) as raw:
        raw.execute("CREATE TABLE odd (code TEXT, body TEXT)")
        raw.executemany("INSERT INTO odd VALUES (?, 'text')", [("a",), ("b",), ("b",), (None,)])
    cli.ok("sources", "add", str(file), "odd", "--key", "code", "--yes")
    (outcome,) = cli.json("sources", "sync")["sources"]
    assert counts(outcome) == {"created": 2, "failed": 2}
    assert [problem["key"] for problem in outcome["problems"]] == ["None", "b"]
    result = cli("sources", "sync")
    assert result.exit_code == 0
    assert "same key" in result.stderr


# ---- the settings ----


def test_sources_of_the_settings(cli: Commands, file: Path) -> None:
    config = file.parent / "zibaldone.toml"

    def run(*arguments: str) -> Any:
        return cli.json("--config", str(config), "sources", *arguments)

    config.write_text(posts_toml(file))
    assert counts(run("sync")["sources"][0]) == {"created": ROWS}
    assert run("show", "posts")["origin"] == "settings"
    # What is defined there can only be changed there.
    for command in ("disable", "remove"):
        assert run(command, "posts")["error"]["code"] == "CONFLICT"
    assert run("add", str(file), "posts", "--yes")["error"]["code"] == "CONFLICT"
    # Another map of the same rows: they become other documents.
    config.write_text(posts_toml(file).replace('title = "Title"', 'title = ["Title", "Id"]'))
    assert counts(run("sync")["sources"][0]) == {"updated": ROWS}
    config.write_text("")
    listed = {source["source"]: source for source in run()["sources"]}
    assert (listed["posts"]["enabled"], listed["posts"]["documents"]) == (False, ROWS)
    config.write_text(posts_toml(file))
    assert {s["source"]: s["enabled"] for s in run()["sources"]}["posts"] is True
    config.write_text("")
    assert run("remove", "posts")["documents"] == ROWS
    # A name that both have is an error that says so.
    run("add", str(file), "posts", "--yes")
    config.write_text(posts_toml(file))
    error = run()["error"]
    assert error["code"] == "CONFIGURATION"
    assert "zibaldone sources remove posts" in error["message"]


def test_a_server_brings_the_settings_into_the_store_and_says_so(
    data: Path, file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "zibaldone.toml"
    config.write_text(posts_toml(file))
    given = {"ZIBALDONE_CONFIG": str(config)}
    with Server(data, environment=given) as server:
        assert "source posts was added" in server.log()
        server.stop()
        config.write_text("")
        server.start()
        assert "source posts is not in the settings any more" in server.log()
    config.write_text("[sources.posts]\nurl = 'mysql://host/db'\ntabel = 'x'\n")
    refused = run_cli("serve", data=data, environment=given)
    assert refused.returncode == 2
    for problem in ("Did you mean 'table'?", "key is missing", "body is missing"):
        assert problem in refused.stderr


# ---- beside a server, and on a terminal ----


def test_a_server_does_the_work_and_the_command_follows(data: Path, file: Path) -> None:
    with Server(data) as server:
        added = run_cli("sources", "add", str(file), "posts", "--yes", data=data)
        assert added.returncode == 0, added.stderr
        answered = run_cli("sources", "sync", "--json", data=data)
        assert answered.returncode == 0, answered.stderr
        (outcome,) = json.loads(answered.stdout)["sources"]
        assert counts(outcome) == {"created": ROWS}
        deadline_s = time.monotonic() + 10
        while "(sync): done" not in server.log():
            assert time.monotonic() < deadline_s, server.log()
            time.sleep(0.05)
        # Live: an edit is found without anybody asking.
        with connected(file) as raw:
            raw.execute("CREATE TABLE news (id INTEGER PRIMARY KEY, body TEXT)")
            raw.execute("INSERT INTO news VALUES (1, 'nothing yet')")
        run_cli("sources", "add", str(file), "news", "--poll", "0.5", "--yes", data=data)
        found: list[Any] = []
        deadline_s = time.monotonic() + 30
        while not found:
            assert time.monotonic() < deadline_s, server.log()
            answer = server.client.get("/search", params={"query": "nothing yet"})
            found = answer.json()["results"]
        with connected(file) as raw:
            raw.execute("UPDATE news SET body = 'an axolotl' WHERE id = 1")
        found = []
        while not found:
            assert time.monotonic() < deadline_s, server.log()
            found = server.client.get("/search", params={"query": "axolotl"}).json()["results"]
        assert found[0]["document_id"] == "news:1"


def test_questions_are_asked_on_a_terminal(data: Path, file: Path) -> None:
    with connected(file) as raw:
        raw.execute("CREATE TABLE other (id INTEGER PRIMARY KEY, name TEXT)")
    shown = _typed(
        ["sources", "add", str(file)],
        data,
        [
            ("Which table", "posts\n"),
            ("Save this?", "change\n"),
            ("Change what", "title\n"),
            ("title (empty: none)", "Title, Score\n"),
            ("Save this?", "yes\n"),
        ],
    )
    assert "1  other" in shown
    assert shown.count("--- posts:1") == 2
    assert "Saved as posts" in shown
    listed = json.loads(run_cli("sources", "show", "posts", "--json", data=data).stdout)
    assert listed["definition"]["document"]["title"] == ["Title", {"text": " "}, "Score"]
    shown = _typed(["sources", "add", str(file), "other"], data, [("Save this?", "no\n")])
    assert "Saved" not in shown
    bar = _typed(["sources", "sync"], data, [])
    assert "Syncing" in bar
    assert f"posts: {ROWS} created" in bar


def _typed(arguments: list[str], data: Path, answers: list[tuple[str, str]]) -> str:
    """What a command shows on a terminal on which these questions are answered."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--data", str(data), *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, env=clean_environment(data=data),
    )  # fmt: skip
    os.close(theirs)
    hang = threading.Timer(60, process.kill)
    hang.start()
    shown, place = "", 0
    waiting = list(answers)
    while True:
        try:
            piece = os.read(ours, 10_000).decode(errors="replace")
        except OSError:
            break
        shown += piece
        if waiting and (at := shown.find(waiting[0][0], place)) >= 0:
            place = at + len(waiting[0][0])
            os.write(ours, waiting.pop(0)[1].encode())
    process.wait()
    hang.cancel()
    os.close(ours)
    assert not waiting, shown
    return shown


def test_a_database_that_is_away_is_told_and_nothing_is_left_behind(
    cli: Commands, file: Path
) -> None:
    cli.ok("sources", "add", str(file), "posts", "--yes")
    synced(cli)
    kept = file.with_suffix(".away")
    file.rename(kept)
    result = cli("sources", "sync")
    assert result.exit_code == 1
    assert "[SOURCE_UNAVAILABLE]" in result.stderr
    assert len(cli.ids()) == ROWS
    jobs = {job["state"]: job["job_id"] for job in cli.json("jobs", "--kind", "sync")["jobs"]}
    assert jobs.keys() == {"done", "cancelled"}
    for command in ("cancel", "retry"):
        assert f"Job {jobs['done']} is done;" in cli("jobs", command, jobs["done"]).stderr
    kept.rename(file)
    assert synced(cli) == {"unchanged": ROWS}


@pytest.mark.engine("sqlite", reason="it is about the environment of a server")
def test_a_variable_that_only_the_command_has(
    data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "mysql://reader:${SHOP_PASSWORD}@127.0.0.1:9/shop"
    settings = tmp_path / "zibaldone.toml"
    settings.write_text(
        f'[sources.shop]\nurl = "{url}"\ntable = "t"\nkey = "id"\n'
        '[sources.shop.document]\nbody = ["b"]\n'
    )
    with Server(data, environment={"ZIBALDONE_CONFIG": str(settings)}):
        monkeypatch.setenv("SHOP_PASSWORD", "change-me")
        monkeypatch.setenv("ZIBALDONE_CONFIG", str(settings))
        result = Commands(data)("sources", "sync", "shop")
    assert result.exit_code == 1
    assert "needs the environment variable SHOP_PASSWORD" in result.stderr
    assert "A server has to be restarted with it." in result.stderr
    assert "change-me" not in result.output


def test_only_postgresql_has_a_trigger(cli: Commands, file: Path) -> None:
    cli.ok("sources", "add", str(file), "posts", "--yes")
    result = cli("sources", "show", "posts", "--trigger")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "Only PostgreSQL notifies, and 'posts' is another database" in result.stderr
    assert cli.json("sources", "show", "posts")["trigger"] is None


def test_a_full_sync_is_one_although_another_waits(cli: Commands, file: Path) -> None:
    cli.ok("sources", "add", str(file), "posts", "--yes")
    synced(cli)
    with connected(file) as raw:  # its watermark does not tell
        raw.execute("UPDATE posts SET Body = 'numbat' WHERE Id = 9")
    cli.ok("call", "rag.admin.sync")
    assert synced(cli, "--full") == {"updated": 1, "unchanged": ROWS - 1}


def test_an_interrupted_sync_is_cancelled(data: Path, file: Path) -> None:
    with connected(file) as raw:
        raw.execute(
            "CREATE VIEW slow AS WITH RECURSIVE n(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000000000)"
            " SELECT x AS id, 'b' AS body FROM n WHERE x < 0"
        )
    toml = file.parent / "zibaldone.toml"
    toml.write_text(
        f'[sources.slow]\nurl = "sqlite:///{file}"\ntable = "slow"\nkey = "id"\n'
        '[sources.slow.document]\nbody = "body"\n'
    )
    environment = {"ZIBALDONE_CONFIG": str(toml)}
    waiting = subprocess.Popen(
        [*COMMAND, "--data", str(data), "sources", "sync"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=clean_environment(environment, data=data),
        # A shell ignores SIGINT in what it starts in the background, and its children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip

    def jobs() -> list[dict[str, Any]]:
        listed = run_cli("jobs", "--json", data=data).stdout
        found: list[dict[str, Any]] = json.loads(listed).get("jobs", [])  # maybe no store yet
        return found

    try:
        deadline_s = time.monotonic() + 60
        while not any(job["state"] == "running" for job in jobs()):
            assert time.monotonic() < deadline_s
        waiting.send_signal(signal.SIGINT)
        _, complaint = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 130, complaint
    assert [job["state"] for job in jobs()] == ["cancelled"]

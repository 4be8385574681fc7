"""A mistyped --data: commands that read make nothing and say what is wrong; others say so."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of
from tests.drivers.server import Server, run_cli

READING = (
    ["ls"],
    ["search", "word"],
    ["get", "a"],
    ["history", "a"],
    ["restore", "a", "1"],
    ["patch", "a", "--old", "x", "--new", "y"],
    ["put", "a", "--if-revision", "1"],
    ["rm", "a"],
    ["export", "out"],
    ["usage"],
    ["jobs"],
    ["jobs", "show", "x"],
    ["sources"],
    ["sources", "list"],
    ["sources", "show", "x"],
    ["sources", "remove", "x", "--yes"],
    ["sources", "sync"],
    ["sources", "chunking", "kb"],
    ["key", "list"],
    ["key", "revoke", "x"],
    ["index", "status"],
    ["index", "audit"],
    ["reindex", "--embedder", "hashed"],
    ["memory", "audit"],
    ["sessions"],
    ["call", "list_documents"],
)


@pytest.mark.engine("sqlite", reason="the rule is above the store; the next test is of both")
@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_command_that_reads_makes_nothing(cli: Commands, arguments: list[str]) -> None:
    flags = [] if arguments[0] == "call" else ["--json"]
    result = cli(*arguments, *flags, stdin="x")
    assert result.exit_code == 4, result.output
    assert "STORE_NOT_FOUND" in result.output
    assert not cli.data.exists()


@pytest.fixture
def nothing(data: Path, store_engine: str) -> Path:
    """A data folder without a store; the databases of tests have their tables already."""
    if store_engine == "postgres":
        with psycopg.connect(backend_of(data).url, autocommit=True) as raw:
            raw.execute("DROP SCHEMA zibaldone CASCADE")
    return data


def test_the_error_names_the_place_and_creating_says_so(nothing: Path, store_engine: str) -> None:
    is_file = store_engine == "sqlite"
    what = f"he SQLite file {nothing}/zibaldone.db" if is_file else "he schema zibaldone in "
    refused = run_cli("search", "anything", data=nothing)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert refused.stderr.startswith(f"zibaldone: T{what}")
    assert refused.stderr.endswith("[STORE_NOT_FOUND]\n")
    for creator in ("zibaldone put", "zibaldone import", "zibaldone serve"):
        assert creator in refused.stderr
    error = Commands(nothing).json("ls")["error"]
    assert error["code"] == "STORE_NOT_FOUND"
    assert error["details"] == ({"folder": str(nothing)} if is_file else {})
    assert not nothing.exists()

    made = run_cli("put", "a", data=nothing, stdin="text")
    assert (made.returncode, made.stdout) == (0, "created a (revision 1)\n")
    assert made.stderr.startswith(f"Creating t{what}")
    assert made.stderr.count("\n") == 1
    assert Commands(nothing)("put", "b", stdin="text").stderr == ""
    assert Commands(nothing).ids() == ["a", "b"]


@pytest.mark.engine("sqlite", reason="the rule is above the store")
@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "files"],
        ["key", "create"],
        ["call", "upload_document", '{"path": "a", "content": "b"}'],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_stores_something_creates(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path)
    done = Commands(data)(*arguments)
    assert done.exit_code == 0, done.output
    assert f"Creating the SQLite file {data}" in done.stderr
    assert (data / "zibaldone.db").is_file()


@pytest.mark.engine("sqlite", reason="the rule is above the store")
def test_a_preview_needs_no_store_and_makes_none(cli: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.md").write_text("text")
    assert cli.json("import", str(folder), "--dry-run")["created"] == 1
    assert not cli.data.exists()


def test_doctor_notices_a_server_of_another_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_engine: str
) -> None:
    monkeypatch.setenv("ZIBALDONE_PORT", str(server.port))
    other = Commands(tmp_path / "other")
    other.ok("put", "a", stdin="x")

    def server_finding(cli: Commands) -> tuple[str, str, str]:
        findings = cli.json("doctor")["findings"]
        (found,) = [finding for finding in findings if finding["subject"] == "server"]
        return found["status"], found["text"], found["advice"]

    status, text, advice = server_finding(other)
    what = f"folder than {other.data}" if store_engine == "sqlite" else "store"
    assert (status, text) == ("warn", f"{server.url} is healthy, but serves another {what}")
    assert "--data" in advice
    same = [server.data]
    if store_engine == "sqlite":
        monkeypatch.chdir(server.data.parent)
        same += [Path(server.data.name), server.data / ".." / server.data.name]
        assert f"creating the SQLite file {server.data}/zibaldone.db" in server.log()
    for data in same:
        assert server_finding(Commands(data))[:2] == ("ok", f"{server.url} is healthy")
    assert server.client.get("/health").json()["store_mark"]
    forwarded = server.client.get("/health", headers={"X-Forwarded-For": "203.0.113.9"})
    assert "store_mark" not in forwarded.json(), "for this machine only"

"""doctor: one line for each thing looked at, whatever state the data is in."""

from __future__ import annotations

import http.server
import os
import shutil
import sqlite3
import subprocess
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import zibaldone
from tests.drivers.commands import Commands
from tests.drivers.rerank_server import RerankServer
from tests.drivers.server import COMMAND, Server, clean_environment, free_port
from tests.embed.built_in import needs
from zibaldone.cli.doctor_surroundings import extras


def findings(cli: Commands, *arguments: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit code, and the findings by what they are about."""
    result = cli("doctor", *arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in cli.json("doctor", *arguments)["findings"]:
        found.setdefault(finding["subject"], []).append(finding)
    return result.exit_code, found


def only(found: dict[str, list[dict[str, Any]]], subject: str) -> tuple[str, str]:
    (finding,) = found[subject]
    return finding["status"], finding["text"]


@pytest.fixture
def database(cli: Commands) -> Path:
    for number in range(30):
        cli.ok("put", f"n/{number}", stdin=f"some words {number} " * 200)
    return cli.data / "zibaldone.db"


def test_a_sound_database(cli: Commands, database: Path, store_engine: str) -> None:
    code, found = findings(cli)
    assert code == 0
    assert only(found, "zibaldone") == ("ok", zibaldone.__version__)
    folder = str(cli.data) if store_engine == "sqlite" else "not used: the store is elsewhere"
    assert only(found, "data folder") == ("ok", folder)
    assert {finding["status"] for every in found.values() for finding in every} == {"ok"}
    assert "schema" in only(found, "database")[1]
    assert "everything checked" in only(findings(cli, "--thorough")[1], "database")[1]
    lines = cli.ok("doctor").splitlines()
    assert lines[0].split() == ["ok", "zibaldone", zibaldone.__version__]
    port = f"port environment variable ZIBALDONE_PORT {os.environ['ZIBALDONE_PORT']}"
    assert port in [" ".join(line.split()) for line in lines]


@pytest.mark.engine("sqlite", reason="a database is there before the first start")
def test_nothing_is_there_yet_and_nothing_is_made(cli: Commands) -> None:
    code, found = findings(cli)
    assert code == 0
    assert only(found, "data folder")[0] == "warn"
    assert only(found, "database")[0] == "warn"
    assert not cli.data.exists()


@pytest.mark.engine("sqlite", reason="it is about the file")
def test_a_damaged_page_is_found(cli: Commands, database: Path) -> None:
    content = bytearray(database.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 8192] = b"\xff" * 8192
    database.write_bytes(content)
    code, found = findings(cli, "--thorough")
    assert code == 1
    assert {finding["status"] for finding in found["database"]} == {"fail"}
    assert all(finding["advice"] for finding in found["database"])


@pytest.mark.engine("sqlite", reason="it is about the file")
@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0 torn"])
def test_a_file_that_is_no_database(cli: Commands, content: bytes) -> None:
    cli.data.mkdir()
    file = cli.data / "zibaldone.db"
    file.write_bytes(content)
    code, found = findings(cli)
    assert (code, only(found, "database")[0]) == (1, "fail")
    assert file.read_bytes() == content


@pytest.mark.engine("sqlite", reason="it is about the file")
def test_a_database_of_another_program(cli: Commands) -> None:
    cli.data.mkdir()
    file = cli.data / "zibaldone.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    content = file.read_bytes()
    code, found = findings(cli)
    status, text = only(found, "database")
    assert (code, status) == (1, "fail")
    assert "another program" in text
    assert file.read_bytes() == content


@pytest.mark.engine("sqlite", reason="it is about the file")
def test_a_folder_in_the_place_of_the_file(cli: Commands) -> None:
    (cli.data / "zibaldone.db").mkdir(parents=True)
    code, found = findings(cli)
    assert (code, only(found, "database")[0]) == (1, "fail")


@pytest.mark.engine("sqlite", reason="it is about the folder of the file")
def test_a_file_in_the_place_of_the_folder(cli: Commands) -> None:
    cli.data.write_text("x")
    code, found = findings(cli)
    assert (code, only(found, "data folder")[0]) == (1, "fail")


def run_without_privileges(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Root may write anywhere, unless it gives up that right."""
    rights = "--bounding-set=-dac_override,-dac_read_search"
    prefix = ["setpriv", rights] if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, *COMMAND, "--data", str(data), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(data=data),
    )


@pytest.mark.engine("sqlite", reason="it is about the file")
@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root, and no setpriv"
)
def test_data_that_this_user_may_not_write(cli: Commands, database: Path) -> None:
    database.chmod(0o444)
    cli.data.chmod(0o500)
    try:
        checked = run_without_privileges("doctor", data=cli.data)
        refused = run_without_privileges("rm", "n/1", data=cli.data)
    finally:
        cli.data.chmod(0o700)
    assert checked.returncode == 1, checked.stderr
    lines = [line.split() for line in checked.stdout.splitlines()]
    assert ["fail", "data", "folder"] in [line[:3] for line in lines]
    assert ["fail", "database"] in [line[:2] for line in lines]
    assert "chown" in checked.stdout
    assert refused.returncode == 7, refused.stderr
    assert refused.stderr.startswith("zibaldone: ")
    assert "Traceback" not in checked.stderr + refused.stderr


@pytest.mark.engine("sqlite", reason="it is about the folder of the file")
def test_a_folder_open_to_others(cli: Commands, database: Path) -> None:
    cli.data.chmod(0o755)
    code, found = findings(cli)
    assert (code, only(found, "data folder")[0]) == (0, "warn")
    assert found["data folder"][0]["advice"] == f"chmod 700 {cli.data}"


def test_settings_and_where_they_come_from(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "my.toml"
    config.write_text('port = 9999\nhost = "127.0.0.2"\n')
    monkeypatch.setenv("ZIBALDONE_CONFIG", str(config))
    monkeypatch.delenv("ZIBALDONE_PORT")
    monkeypatch.setenv("ZIBALDONE_HOST", "127.0.0.3")
    in_force = {one["name"]: one for one in cli.json("doctor")["settings"]}
    assert in_force["data"]["source"] == "option --data"
    assert in_force["host"]["value"] == "127.0.0.3"
    assert in_force["host"]["source"] == "environment variable ZIBALDONE_HOST"
    assert in_force["port"] == {"name": "port", "value": 9999, "source": str(config)}
    assert in_force["log_level"]["source"] == "default"
    brief, whole = cli("doctor").stdout, cli("doctor", "--all").stdout
    assert "127.0.0.3" in brief
    assert "log_level" not in brief
    assert "log_level" in whole
    config.write_text("prot = 9999")
    code, found = findings(cli)
    status, text = only(found, "settings")
    assert (code, status) == (1, "fail")
    assert "'port'" in text


def test_a_server_that_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIBALDONE_PORT", str(server.port))
    server.create("a")
    code, found = findings(Commands(server.data), "--thorough")
    assert code == 0
    assert only(found, "server") == ("ok", f"{server.url} is healthy")
    assert only(found, "database")[0] == "ok"


def test_another_program_on_the_port(cli: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("ZIBALDONE_PORT", str(port))
    with http.server.HTTPServer(("127.0.0.1", port), http.server.BaseHTTPRequestHandler) as other:
        serving = threading.Thread(target=other.serve_forever)
        serving.start()
        try:
            code, found = findings(cli)
        finally:
            other.shutdown()
            serving.join()
    assert (code, only(found, "server")[0]) == (0, "warn")


def test_the_embedder_is_named_or_what_it_lacks(
    cli: Commands, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(findings(cli)[1], "embedder") == ("ok", "none: keyword search only")
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "hashed")
    assert only(findings(cli)[1], "embedder") == ("ok", "hashed/64, 64 dimensions")
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "remote")
    code, found = findings(cli)
    assert code == 1
    assert only(found, "embedder")[0] == "fail"
    assert "embedding_url" in only(found, "embedder")[1]
    assert only(found, "database")[0] == "ok"


@needs("minilm")
def test_the_model_that_auto_takes_is_named(
    cli: Commands, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "auto")
    status, text = only(findings(cli)[1], "embedder")
    assert status == "ok"
    assert text.startswith("all-MiniLM-L6-v2")
    assert text.endswith("(chosen by auto)")


def test_the_reranker_is_asked_once_a_run(
    cli: Commands, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with RerankServer() as reranker:
        monkeypatch.setenv("ZIBALDONE_RERANKER", reranker.url)
        code, found = findings(cli)
        assert (code, only(found, "reranker")[0]) == (0, "ok")
        assert len(reranker.asked) == 2  # `findings` runs the command twice
        reranker.answer = lambda asked: (500, b"")
        code, found = findings(cli)
        assert (code, only(found, "reranker")[0]) == (0, "warn")
        assert "answered 500" in only(found, "reranker")[1]
    monkeypatch.setenv("ZIBALDONE_RERANKER", "nonsense")
    assert only(findings(cli)[1], "reranker")[0] == "fail"


def test_every_package_of_an_extra_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["one>=1; extra == 'x'", "two==2; (python_version < '3.14') and extra == 'x'"]
    monkeypatch.setattr(metadata, "requires", lambda _: asked)
    (extra,) = extras()
    assert (extra.name, extra.missing) == ("x", ("one", "two"))

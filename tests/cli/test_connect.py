"""zibaldone connect: what a client needs to know, shown or written into its file."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "vscode")
FILES = {
    "claude-code": "project/.mcp.json",
    "claude-desktop": "home/.config/Claude/claude_desktop_config.json",
    "codex": "home/.codex/config.toml",
    "cursor": "home/.cursor/mcp.json",
    "vscode": "project/.vscode/mcp.json",
}
TABLE = {"codex": "mcp_servers", "vscode": "servers"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the paths are those of Linux"),
    pytest.mark.engine("sqlite", reason="it is about files of clients"),
]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home and a project that nobody has used."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ZIBALDONE_PORT")
    monkeypatch.chdir(tmp_path / "project")


def read(client: str, text: str) -> Any:
    content = tomllib.loads(text) if client == "codex" else json.loads(text)
    return content[TABLE.get(client, "mcpServers")]


@pytest.mark.parametrize("client", CLIENTS)
def test_it_shows_the_entry_and_where_it_belongs(
    client: str, cli: Commands, tmp_path: Path
) -> None:
    result = cli("connect", client)
    assert result.exit_code == 0, result.output
    entry = read(client, result.stdout)["zibaldone"]
    if client == "claude-desktop":
        assert Path(entry["command"]).is_absolute()
        assert entry["args"] == ["--data", str(cli.data), "stdio"]
    else:
        assert entry["url"] == "http://127.0.0.1:8321/mcp"
    assert str(tmp_path / FILES[client]) in result.stderr
    assert not (tmp_path / FILES[client]).exists(), "nothing is written unless asked for"


@pytest.mark.parametrize("client", ["claude-desktop", "codex"])
def test_the_command_that_is_shown_answers(client: str, cli: Commands, tmp_path: Path) -> None:
    """As a client starts it: somewhere, with next to no environment."""
    shown = cli.json("connect", client, "--stdio", "--profile", "readonly")
    entry = shown["entry"]
    environment = {"HOME": str(tmp_path / "home"), "ZIBALDONE_EMBEDDER": "none"}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    lines = [INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    result = subprocess.run(
        [entry["command"], *entry["args"]],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        env=environment,
        cwd="/",
        timeout=60,
        check=False,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, result.stdout.splitlines())}
    assert answers[1]["result"]["serverInfo"]["name"] == "zibaldone", result.stderr
    assert len(answers[2]["result"]["tools"]) == 5
    assert (cli.data / "zibaldone.db").exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_writing_keeps_everything_else(client: str, cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / FILES[client]
    file.parent.mkdir(parents=True, exist_ok=True)
    if client == "codex":
        before = (
            'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "a"\n\n'
            '[mcp_servers.zibaldone]\nurl = "http://old"\n\n'
            '[mcp_servers.zibaldone.env]\nA = "b"\n\n'
            "[tui]\nnotifications = true\n"
        )
        file.write_text(before)
    else:
        key = TABLE.get(client, "mcpServers")
        content = {"first": [1, "ü"], key: {"other": {"command": "a"}, "zibaldone": {"url": "x"}}}
        before = json.dumps(content, indent=4, ensure_ascii=False)
        file.write_text(before)
    file.chmod(0o640)

    answer = cli.json("connect", client, "--write")
    assert (answer["status"], answer["file"]) == ("updated", str(file))
    assert Path(answer["backup"]).read_text() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    after = file.read_text()
    servers = read(client, after)
    assert servers["zibaldone"] == answer["entry"]
    assert servers["other"] == {"command": "a"}
    if client == "codex":
        assert 'model = "x" # mine\n' in after
        assert tomllib.loads(after)["tui"] == {"notifications": True}
    else:
        assert json.loads(after)["first"] == [1, "ü"]
        assert '\n    "first"' in after, "its indentation stays"

    again = cli.json("connect", client, "--write")
    assert (again["status"], again["backup"]) == ("unchanged", None)
    assert file.read_text() == after
    names = sorted(path.name for path in file.parent.iterdir())
    assert names == sorted([file.name, Path(answer["backup"]).name])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_is_not_there_is_made(client: str, cli: Commands, tmp_path: Path) -> None:
    assert "created" in cli.ok("connect", client, "--write")
    assert [*read(client, (tmp_path / FILES[client]).read_text())] == ["zibaldone"]


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("vscode", '{ // a comment\n "servers": {}}'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {}, "mcpServers": {"a": {}}}'),
        ("claude-desktop", '{"mcpServers": {'),
        ("claude-code", '{"a": "\xff"}'),
        ("codex", "[mcp_servers\n"),
        ("codex", 'mcp_servers = "x"\n'),
        ("codex", 'mcp_servers = { zibaldone = { url = "http://old" } }\n'),
    ],
)
def test_a_file_it_does_not_understand_is_left_alone(
    client: str, text: str, cli: Commands, tmp_path: Path
) -> None:
    file = tmp_path / FILES[client]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="latin-1")
    assert cli.error("connect", client, "--write") == (5, "CONFLICT")
    assert file.read_text(encoding="latin-1") == text
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_key_is_referred_to_and_never_written(cli: Commands) -> None:
    headers = {
        "claude-code": "Bearer ${ZIB_KEY}",
        "cursor": "Bearer ${env:ZIB_KEY}",
        "vscode": "Bearer ${env:ZIB_KEY}",
    }
    for client, value in headers.items():
        entry = cli.json("connect", client, "--key", "ZIB_KEY")["entry"]
        assert entry["headers"] == {"Authorization": value}
    command = cli.json("connect", "claude-code", "--key", "ZIB_KEY")["command"]
    environment = {"ZIB_KEY": "the-secret"}
    shell = ["/bin/sh", "-c", f"printf '%s\\n' {command}"]
    words = subprocess.check_output(shell, env=environment, text=True)
    assert words.endswith("--header\nAuthorization: Bearer ${ZIB_KEY}\n")
    entry = cli.json("connect", "codex", "--key", "ZIB_KEY")["entry"]
    assert entry["bearer_token_env_var"] == "ZIB_KEY"
    for wrong in ("zib_abc.def", "zib_" + "a1_" * 12, "ZIBALDONE_KEY"):
        assert cli.error("connect", "cursor", "--key", wrong) == (3, "INVALID_ARGUMENT")
    assert cli.error("connect", "cursor", "--stdio", "--key", "K") == (3, "INVALID_ARGUMENT")


def test_profile_address_name_and_file_can_be_chosen(cli: Commands, tmp_path: Path) -> None:
    more = ["--profile", "readonly", "--url", "https://kb.example.org/", "--name", "kb"]
    file = tmp_path / "elsewhere" / "mcp.json"
    answer = cli.json("connect", "cursor", *more, "--file", str(file), "--write")
    content = json.loads(file.read_text())
    assert content == {"mcpServers": {"kb": {"url": "https://kb.example.org/mcp-readonly"}}}
    assert answer["file"] == str(file)
    assert cli.error("connect", "cursor", "--profile", "none")[0] == 2
    assert cli.error("connect", "cursor", "--name", "a b") == (3, "INVALID_ARGUMENT")
    assert cli.error("connect", "cursor", "--url", "kb.example.org") == (3, "INVALID_ARGUMENT")
    assert cli.error("connect", "claude-desktop", "--http") == (3, "INVALID_ARGUMENT")


def test_settings_of_this_folder_go_along(cli: Commands, tmp_path: Path) -> None:
    """A client starts the command in another folder, without the variables of this shell."""
    config = tmp_path / "project" / "zibaldone.toml"
    config.write_text("port = 9000\n")
    result = cli("connect", "cursor", "--stdio")
    arguments = read("cursor", result.stdout)["zibaldone"]["args"]
    assert arguments[arguments.index("--config") + 1] == str(config)
    assert "ZIBALDONE_EMBEDDER" in result.stderr
    assert read("cursor", cli("connect", "cursor").stdout)["zibaldone"]["url"] == (
        "http://127.0.0.1:9000/mcp"
    )


def test_a_relative_data_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "project")
    entry = Commands(Path("data")).json("connect", "claude-desktop")["entry"]
    assert entry["args"] == ["--data", str(tmp_path / "project" / "data"), "stdio"]


def test_what_uvx_runs_from_its_cache_is_started_by_uvx(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment may be removed any time."""
    uvx = tmp_path / "uvx"
    uvx.write_text("#!/bin/sh\n")
    uvx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "uv" / "archive-v0" / "x"))
    entry = cli.json("connect", "claude-desktop")["entry"]
    assert (entry["command"], entry["args"][0]) == (str(uvx), "zibaldone")


def test_a_password_of_the_store_is_not_written(cli: Commands) -> None:
    for store in ("postgresql://me:secret@db/kb", "postgresql://db/kb?user=me&password=secret"):
        result = cli("--store", store, "connect", "cursor", "--stdio", "--write")
        assert result.exit_code == 2
        assert "secret" not in result.output
    entry = cli.json("--store", "postgresql://db/kb", "connect", "cursor", "--stdio")["entry"]
    assert entry["args"][2:4] == ["--store", "postgresql://db/kb"]


def test_claude_codes_own_command_is_shown(cli: Commands) -> None:
    command = cli.json("connect", "claude-code", "--stdio")["command"]
    entry = cli.json("connect", "claude-code", "--stdio")["entry"]
    words = shlex.split(command)
    assert words[:3] == ["claude", "mcp", "add"]
    assert words[words.index("--") + 1 :] == [entry["command"], *entry["args"]]


def test_a_link_stays_a_link(cli: Commands, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = tmp_path / FILES["cursor"]
    link.parent.mkdir()
    link.symlink_to(real)
    cli.ok("connect", "cursor", "--write")
    assert link.is_symlink()
    assert "zibaldone" in json.loads(real.read_text())["mcpServers"]


def test_it_says_what_is_left_to_do(cli: Commands) -> None:
    server = "needs the server running at http://127.0.0.1:8321/mcp: zibaldone serve"
    assert f"# Cursor {server}" in cli("connect", "cursor").stderr
    written = cli.ok("connect", "cursor", "--write")
    assert "Restart Cursor to take the change over." in written
    assert f"Cursor {server}" in written
    written = cli.ok("connect", "claude-desktop", "--write")
    assert "Restart Claude Desktop to take the change over." in written
    assert "server running" not in written

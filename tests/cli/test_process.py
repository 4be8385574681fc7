"""The command as a user runs it: its exit codes, its words, its pipes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.server import COMMAND, Server, clean_environment, parsed, run_cli


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (["get", "missing"], 4, "NOT_FOUND"),
        (["get", "a/../b"], 3, "INVALID_ARGUMENT"),
        (["put", "taken"], 5, "CONFLICT"),
        (["patch", "taken", "--old", "zz", "--new", ""], 5, "NOT_FOUND_IN_CONTENT"),
        (["search", "x" * 9000], 3, "LIMIT_EXCEEDED"),
        (["restore", "taken", "9"], 4, "NOT_FOUND"),
    ],
)
def test_exit_codes(data: Path, arguments: list[str], exit_code: int, code: str) -> None:
    Commands(data).ok("put", "taken", stdin="x")
    plain = run_cli(*arguments, data=data, stdin="text")
    assert (plain.returncode, plain.stdout) == (exit_code, "")
    assert plain.stderr.startswith("zibaldone: ")
    assert plain.stderr.endswith(f"[{code}]\n")
    assert plain.stderr.count("\n") == 1
    machine = run_cli(*arguments, "--json", data=data, stdin="text")
    assert (machine.returncode, machine.stderr) == (exit_code, "")
    assert parsed(machine)["error"]["code"] == code


def test_wrong_usage(data: Path) -> None:
    for arguments in ([], ["nonsense"], ["get"], ["ls", "--nonsense"], ["restore", "a", "x"]):
        result = run_cli(*arguments, data=data)
        assert result.returncode == 2
        assert "Usage:" in result.stderr + result.stdout
        assert "Traceback" not in result.stderr
    assert not data.exists()


def test_an_unknown_setting_is_refused_with_the_nearest_name(data: Path, tmp_path: Path) -> None:
    wrong = run_cli("ls", data=data, environment={"ZIBALDONE_PROT": "80"})
    assert wrong.returncode == 2
    assert "ZIBALDONE_PROT" in wrong.stderr
    assert "ZIBALDONE_PORT?" in wrong.stderr
    config = tmp_path / "zibaldone.toml"
    config.write_text("log_levle = 'debug'")
    for found in (run_cli("ls", data=data, cwd=tmp_path), run_cli("--config", str(config), "ls")):
        assert found.returncode == 2
        assert "'log_level'" in found.stderr
        assert "Traceback" not in found.stderr
    as_json = run_cli("ls", "--json", data=data, environment={"ZIBALDONE_PORT": "many"})
    assert (as_json.returncode, parsed(as_json)["error"]["code"]) == (2, "CONFIGURATION")


@pytest.mark.engine("sqlite", reason="it is about the file")
def test_a_damaged_file(data: Path) -> None:
    data.mkdir()
    (data / "zibaldone.db").write_bytes(b"no database at all" * 1000)
    result = run_cli("ls", data=data)
    assert result.returncode == 7
    assert "doctor" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.engine("sqlite", reason="the store is in the folder")
def test_the_data_folder_from_the_environment(data: Path) -> None:
    environment = {"ZIBALDONE_DATA": str(data)}
    assert run_cli("put", "ключ/ñ", environment=environment, stdin="žluť").returncode == 0
    assert run_cli("get", "ключ/ñ", environment=environment).stdout == "žluť"
    assert run_cli("ls", data=data).stdout == "ключ/ñ\n"


def test_a_large_document_goes_through_pipes(data: Path) -> None:
    body = b"".join(hashlib.sha256(bytes([one])).hexdigest().encode() + b"\n" for one in range(256))
    body = body * 600  # 9.5 MiB
    command = [*COMMAND, "--data", str(data)]
    environment = clean_environment(data=data)
    put = subprocess.run(
        [*command, "put", "large"], input=body, env=environment, capture_output=True, check=False
    )
    assert put.returncode == 0, put.stderr
    got = subprocess.run(
        [*command, "get", "large"], env=environment, capture_output=True, check=True
    )
    assert got.stdout == body


def test_the_reader_of_a_pipe_may_leave(data: Path) -> None:
    cli = Commands(data)
    cli.ok("put", "large", stdin="line\n" * 200_000)
    with subprocess.Popen(
        [*COMMAND, "--data", str(data), "get", "large"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(data=data),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        complaint = process.stderr.read()
    assert complaint == b""


def test_an_argument_that_is_no_text(data: Path) -> None:
    Commands(data).ok("put", "any", stdin="x")
    result = subprocess.run(
        [*COMMAND, "--data", str(data), "get", b"caf\xe9"],
        env=clean_environment(data=data),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 3
    assert b"Traceback" not in result.stderr


def test_answers_are_json_for_every_command(data: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "b.md").write_text("b")
    cli = Commands(data)
    for arguments in (
        ["put", "a"],
        ["get", "a"],
        ["ls"],
        ["patch", "a", "--old", "x", "--new", "y"],
        ["search", "y"],
        ["history", "a"],
        ["restore", "a", "1"],
        ["rm", "a"],
        ["import", str(tmp_path / "files")],
        ["export", str(tmp_path / "out")],
        ["doctor"],
    ):
        result = cli(*arguments, "--json", stdin="x")
        assert result.exit_code == 0, result.output
        assert isinstance(json.loads(result.stdout), dict)


def test_a_second_server_on_the_port_says_so(server: Server, data: Path) -> None:
    refused = run_cli("serve", "--port", str(server.port), data=data.parent / "other")
    assert refused.returncode == 2
    assert f"port {server.port}: Address already in use" in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_port_that_is_no_number_is_refused_in_words(data: Path) -> None:
    refused = run_cli("ls", data=data, environment={"ZIBALDONE_PORT": "abc"})
    assert refused.returncode == 2
    assert "ZIBALDONE_PORT must be a whole number, not 'abc'." in refused.stderr


@pytest.mark.engine("sqlite", reason="nothing of it is about the store")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["search", "x", "--data", "y"],
            "--data goes before the command: zibaldone --data ... search",
        ),
        (["sources", "show", "x", "--store", "y"], "--store goes before the command"),
        (["--json", "search", "x"], "--json goes after the command"),
        (["serch", "x"], "No such command 'serch'. Did you mean 'search'"),
        (["nonsense"], "No such command 'nonsense'."),
        (["search", "x", "--jsn"], "Did you mean '--json'?"),
    ],
)
def test_wrong_usage_says_what_is_right(cli: Commands, arguments: list[str], message: str) -> None:
    result = cli(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "--tag" not in result.output


@pytest.mark.engine("sqlite", reason="nothing of it is about the store")
def test_the_help_of_import_has_its_options(cli: Commands) -> None:
    shown = cli.ok("import", "--help")
    for option in ("--prefix", "--include", "--prune", "--dry-run"):
        assert option in shown

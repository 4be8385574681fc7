"""key: what a key does is said before it is made, and there is an explicit way back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.keys import create_key
from tests.drivers.server import Server
from tests.drivers.terminal import Terminal

_SECONDS_MAX = 10.0


def wait_for_status(server: Server, status: int, **headers: str) -> None:
    """A running server notices within a second."""
    until_s = time.monotonic() + _SECONDS_MAX
    while server.client.get("/documents", headers=headers).status_code != status:
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_the_first_key_closes_and_deleting_the_last_opens(server: Server) -> None:
    cli = Commands(server.data)
    assert server.client.get("/documents").status_code == 200
    first = cli("key", "create", "--json")
    assert "every client of the server needs a key" in first.stderr.replace("\n", " ")
    second = cli("key", "create", "--json")
    assert second.stderr == "", "said once"
    wait_for_status(server, 401)
    ids = [key["key_id"] for key in cli.json("key", "list")["keys"]]
    assert cli("key", "revoke", ids[0]).stderr == ""
    assert "every client is refused" in cli("key", "revoke", ids[1]).stderr
    assert "No valid key is left" in cli("key", "list").stderr
    wait_for_status(server, 401)

    cli.ok("key", "delete", ids[0])
    refused = cli("key", "delete", ids[1])
    assert refused.exit_code == 5
    assert "--yes" in refused.stderr
    assert server.client.get("/documents").status_code == 401
    assert cli.json("key", "delete", ids[1], "--yes") == {"deleted": [ids[1]], "is_open": True}
    wait_for_status(server, 200)
    assert cli.ok("key", "list").startswith("There are no keys")


def test_with_an_issuer_the_first_key_closes_nothing(
    cli: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("put", "a", stdin="x")
    monkeypatch.setenv("ZIBALDONE_OAUTH_ISSUER", "https://id.example.org")
    monkeypatch.setenv("ZIBALDONE_PUBLIC_URL", "https://kb.example.org")
    made = cli("key", "create")
    assert (made.exit_code, made.stderr) == (0, "")


def test_keys_that_have_ended_open_nothing_and_it_is_said(cli: Commands) -> None:
    create_key(cli.data, "--expires", "2020-01-01T00:00:00Z")
    assert "No valid key is left" in cli("key", "list").stderr
    key = create_key(cli.data)
    assert cli("key", "list").stderr == ""
    assert "No valid key is left" in cli("key", "revoke", key.key_id).stderr


def test_all_are_deleted_or_none(cli: Commands) -> None:
    keys = [create_key(cli.data) for _ in range(3)]
    assert cli.error("key", "delete", keys[0].key_id, "key_unknown") == (4, "NOT_FOUND")
    assert cli.error("key", "delete", "--all") == (5, "CONFLICT")
    assert len(cli.json("key", "list")["keys"]) == 3
    assert cli("key", "delete").exit_code == 2
    assert cli("key", "delete", keys[0].key_id, "--all").exit_code == 2
    done = cli.ok("key", "delete", "--all", "--yes")
    assert "this machine needs none" in done
    assert cli.json("key", "list")["keys"] == []


@pytest.mark.engine("sqlite", reason="it is about the address that is served")
def test_a_server_for_other_machines_stays_closed(data: Path) -> None:
    key = create_key(data)
    with Server(data, arguments=("--host", "0.0.0.0")) as server:
        wait_for_status(server, 200, **key.headers)
        Commands(data).ok("key", "delete", key.key_id, "--yes")
        wait_for_status(server, 401, **key.headers)
        assert server.client.get("/documents").status_code == 401


@pytest.mark.engine("sqlite", reason="it is about the terminal")
def test_on_a_terminal_you_are_asked(data: Path) -> None:
    cli = Commands(data)
    cli.ok("put", "a", stdin="x")
    with Terminal("key", "create", data=data) as terminal:
        terminal.wait_for("Create it? [y/N]")
        assert "This is the first key." in terminal.shown
        terminal.press("n\n")
        assert terminal.end() == 1
        assert "Nothing was changed." in terminal.shown
    assert cli.json("key", "list")["keys"] == []
    with Terminal("key", "create", "--yes", data=data) as terminal:
        assert terminal.end() == 0
        assert "shown only once" in terminal.shown
    (key,) = cli.json("key", "list")["keys"]
    for answer, code, left in (("n", 1, 1), ("y", 0, 0)):
        with Terminal("key", "delete", key["key_id"], data=data) as terminal:
            terminal.wait_for("Delete it? [y/N]")
            assert "No key would be left." in terminal.shown
            terminal.press(f"{answer}\n")
            assert terminal.end() == code
        assert len(cli.json("key", "list")["keys"]) == left


@pytest.mark.engine("sqlite", reason="it is about the terminal")
def test_you_are_asked_about_the_last_key_only(data: Path) -> None:
    first, _ = create_key(data), create_key(data)
    with Terminal("key", "delete", first.key_id, data=data) as terminal:
        assert terminal.end() == 0
        assert "[y/N]" not in terminal.shown
    assert len(Commands(data).json("key", "list")["keys"]) == 1

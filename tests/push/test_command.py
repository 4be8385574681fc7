"""`zibaldone push` as it is typed, and as a hook."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.graphiti_server import GraphitiServer
from tests.drivers.memory_server import Asked, Reply, as_json
from tests.drivers.server import Server, free_port
from tests.drivers.zibaldone_stub import ZibaldoneStub
from zibaldone.push.hook import with_hook
from zibaldone.push.state import State


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without settings of whoever runs the tests."""
    for name in ("PUSH_TO", "PUSH_KEY", "PUSH_BACKEND", "CONFIG"):
        monkeypatch.delenv(f"ZIBALDONE_{name}", raising=False)
    monkeypatch.delenv("MADEINOZ_KNOWLEDGE_DB", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(data: Path) -> Commands:
    return Commands(data)


def write(notes: Path, count: int = 3) -> list[str]:
    for number in range(count):
        (notes / f"{number}.md").write_text(f"# Note {number}\n")
    return [str(notes), "--to"]


def away() -> str:
    return f"http://127.0.0.1:{free_port()}/mcp/"


class TestPush:
    def test_a_table_of_what_was_done(
        self, run: Commands, notes: Path, stub: ZibaldoneStub
    ) -> None:
        given = [*write(notes), stub.url]
        (notes / "empty.md").write_text("")
        (notes / "broken.md").write_text("---\na: b: c\n---\nText")
        result = run("push", *given)
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            *("added    4", "skipped  1", "skipped empty.md: empty")
        ]
        assert "broken.md: The front matter is not valid YAML" in result.stderr
        assert run.ok("push", *given).splitlines()[0] == "unchanged  4"
        assert len(stub.stored) == 4

    def test_json(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        answer = run.json("push", *write(notes), stub.url)
        assert answer["target"] == "zibaldone"
        assert answer["server"] == "zibaldone 1"
        assert answer["added"] == ["0.md", "1.md", "2.md"]
        assert answer["counts"]["added"] == 3
        assert answer["stopped"] is None

    def test_dry_run(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        output = run.ok("push", *write(notes), stub.url, "--dry-run")
        assert output.startswith("Nothing was sent.")
        assert stub.asked == []

    def test_status(self, run: Commands, notes: Path, graphiti: GraphitiServer) -> None:
        given = [*write(notes), graphiti.url]
        run.ok("push", *given)
        (notes / "0.md").write_text("changed")
        status = run.json("push", *given, "--status")
        assert status["health"] == "ok"
        assert status["server"] == "Graphiti Agent Memory 1.28.1"
        assert (status["target"], status["sent"]) == ("graphiti", 3)
        assert status["to_do"] == {"add": 0, "update": 1, "delete": 0}
        assert "health" in run.ok("push", *given, "--status")
        assert run("push", *write(notes), away(), "--retries", "1", "--status").exit_code == 7

    def test_delete_and_all(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        given = [*write(notes), stub.url]
        run.ok("push", *given)
        (notes / "0.md").unlink()
        assert "gone       1" in run.ok("push", *given)
        assert "deleted    1" in run.ok("push", *given, "--delete")
        assert "checked  2" in run.ok("push", *given, "--all")
        assert len(stub.stored) == 2

    def test_an_address_that_is_no_memory(
        self, run: Commands, notes: Path, shared_server: Server
    ) -> None:
        for path in ("/mcp", "/nothing"):
            result = run("push", *write(notes), shared_server.url + path, "--retries", "1")
            assert result.exit_code != 0
            assert "Zibaldone's ends in /mcp-memory" in result.output

    def test_the_url_and_the_key_from_settings(
        self, run: Commands, notes: Path, stub: ZibaldoneStub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, _ = write(notes)
        assert "Where to?" in run("push", folder).stderr
        monkeypatch.setenv("ZIBALDONE_PUSH_TO", stub.url)
        monkeypatch.setenv("ZIBALDONE_PUSH_KEY", "zk_secret")
        run.ok("push", folder)
        assert {asked.headers["authorization"] for asked in stub.asked} == {"Bearer zk_secret"}

    @pytest.mark.requirement("SC-10", "SC-11")
    def test_the_backend(
        self, run: Commands, notes: Path, stub: ZibaldoneStub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = [*write(notes), stub.url]
        monkeypatch.setenv("MADEINOZ_KNOWLEDGE_DB", "foo")
        result = run("push", *given)
        assert result.exit_code == 2
        assert "Invalid MADEINOZ_KNOWLEDGE_DB: foo. Must be one of: neo4j, " in result.stderr
        assert stub.asked == []
        assert run("push", *given, "--backend", "falkordb").exit_code == 0


class TestExitCodes:
    def test_away(self, run: Commands, notes: Path) -> None:
        result = run("push", *write(notes), away(), "--retries", "1")
        assert result.exit_code == 7
        assert "left  3" in result.stdout
        assert "[REMOTE_UNAVAILABLE]" in result.stderr

    def test_denied(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        stub.behaviour = lambda asked: as_json({}, 401)
        result = run("push", *write(notes), stub.url)
        assert result.exit_code == 6
        assert "ZIBALDONE_PUSH_KEY" in result.stderr

    def test_some_refused(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        def refuse(asked: Asked) -> Reply | None:
            return as_json({}, 413) if asked.arguments.get("name") == "Note 1" else None

        stub.behaviour = refuse
        result = run("push", *write(notes), stub.url)
        assert result.exit_code == 1
        assert "1.md: " in result.stderr
        assert len(stub.stored) == 2

    def test_usage(self, run: Commands, notes: Path) -> None:
        assert run("push", str(notes / "none"), "--to", "http://a/").exit_code == 4
        assert run("push", *write(notes), "nowhere").exit_code == 2
        assert run("push", *write(notes), "http://a/", "--group", "a b").exit_code == 3


class TestHook:
    def test_is_quiet(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        result = run("push", *write(notes), stub.url, "--hook")
        assert (result.exit_code, result.output) == (0, "")
        assert len(stub.stored) == 3

    def test_succeeds_and_says_so_when_the_server_is_away(self, run: Commands, notes: Path) -> None:
        result = run("push", *write(notes), away(), "--hook", "--retries", "1")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "Cannot connect" in result.stderr
        assert "3 notes are left for the next time." in result.stderr

    def test_keeps_to_its_time(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        stub.behaviour = lambda asked: as_json({}, 503, **{"Retry-After": "60"})
        result = run("push", *write(notes), stub.url, "--hook", "--time-limit", "5")
        assert result.exit_code == 0
        assert "503" in result.stderr
        assert len(stub.asked) == 1

    def test_beside_another_push(
        self, run: Commands, notes: Path, stub: ZibaldoneStub, data: Path
    ) -> None:
        given = [*write(notes), stub.url]
        run.ok("push", *given)
        (file,) = (data / "push").glob("*.db")
        with State(file):
            result = run("push", *given, "--hook")
            assert result.exit_code == 0
            assert "Another push" in result.stderr
            assert run("push", *given).exit_code == 5

    def test_tells_a_wrong_key(self, run: Commands, notes: Path, stub: ZibaldoneStub) -> None:
        stub.behaviour = lambda asked: as_json({}, 401)
        assert run("push", *write(notes), stub.url, "--hook").exit_code == 6


class TestInstallHook:
    def test_is_written_and_works(
        self, run: Commands, notes: Path, stub: ZibaldoneStub, tmp_path: Path
    ) -> None:
        file = tmp_path / "claude" / "settings.json"
        given = [*write(notes), stub.url, "--group", "work", f"--install-hook={file}"]
        run.ok("push", *given)
        before = file.read_text()
        run.ok("push", *given)
        assert file.read_text() == before
        hooks = json.loads(before)["hooks"]
        assert set(hooks) == {"SessionStart", "SessionEnd"}
        ((entry,),) = [group["hooks"] for group in hooks["SessionStart"]]
        assert (entry["type"], entry["timeout"]) == ("command", 30)
        words = shlex.split(entry["command"])
        arguments = words[words.index("push") :]
        assert run(*arguments).exit_code == 0
        assert {one["group_id"] for one in stub.stored.values()} == {"work"}

    def test_leaves_the_rest_alone(self) -> None:
        other = {"matcher": "x", "hooks": [{"type": "command", "command": "push"}]}
        settings: dict[str, Any] = {"model": "m", "hooks": {"SessionEnd": [other], "Stop": []}}
        changed = with_hook(settings, "push", seconds=3)
        entry = {"hooks": [{"type": "command", "command": "push", "timeout": 3}]}
        assert changed == {
            "model": "m",
            "hooks": {"SessionEnd": [other, entry], "Stop": [], "SessionStart": [entry]},
        }
        assert settings["hooks"]["SessionEnd"] == [other]
        assert with_hook(changed, "push", seconds=3) == changed

    @pytest.mark.parametrize(
        "text",
        [
            b"[]",
            b"{",
            b'{"hooks": 1}',
            b'{"hooks": {"SessionEnd": 1}}',
            b'{"model": "\xff"}',
            b'{"model": "\\ud800"}',
            b"[" * 5_000,
        ],
    )
    def test_a_file_that_is_something_else_is_not_touched(
        self, run: Commands, notes: Path, tmp_path: Path, text: bytes
    ) -> None:
        file = tmp_path / "settings.json"
        file.write_bytes(text)
        given = [*write(notes), "http://a/", f"--install-hook={file}"]
        assert run("push", *given).exit_code == 3
        assert file.read_bytes() == text
        assert list(tmp_path.glob("*.new")) == []

    def test_where_a_link_leads(self, run: Commands, notes: Path, tmp_path: Path) -> None:
        """The settings of many are links into a repository."""
        file, link = tmp_path / "kept.json", tmp_path / "settings.json"
        file.write_text('{"hooks": {"SessionEnd": [{"hooks": 5}]}}')
        link.symlink_to(file.name)
        run.ok("push", *write(notes), "http://a/", f"--install-hook={link}")
        assert link.is_symlink()
        assert len(json.loads(file.read_text())["hooks"]["SessionEnd"]) == 2

    def test_a_link_that_leads_to_itself_is_replaced(
        self, run: Commands, notes: Path, tmp_path: Path
    ) -> None:
        link = tmp_path / "settings.json"
        link.symlink_to(link.name)
        run.ok("push", *write(notes), "http://a/", f"--install-hook={link}")
        assert "SessionEnd" in json.loads(link.read_text())["hooks"]

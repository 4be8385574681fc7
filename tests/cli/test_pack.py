"""pack: what a turn would send, as a table, as JSON, and as the prompt itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of
from tests.pack.project import Project, files_in
from zibaldone.access.principal import LOCAL
from zibaldone.consult import state
from zibaldone.limits import Limits
from zibaldone.model.consult import SessionKey, Usage
from zibaldone.pack.build import Ask, build
from zibaldone.pack.counts import CACHE_FILE
from zibaldone.pack.stable import SessionState
from zibaldone.store.port import Writer

pytestmark = pytest.mark.engine("sqlite", reason="a session is read as chat_with_… reads it")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.words("src/a.py", 10)
    project.words("src/large.py", 300)
    project.write("key.py", 'API_KEY = "9f8e7d6c5b4a39281706"\n')
    project.write("logo.png", b"\0")
    return project


@pytest.fixture
def config(project: Project, tmp_path: Path) -> str:
    file = tmp_path / "zibaldone.toml"
    file.write_text(
        "[assistants.reviewer]\n"
        'provider = "openai"\n'
        'model = "gpt-4.1"\n'
        "inline_tokens = 150\n"
        f'roots = ["{project.root}"]\n'
    )
    return str(file)


def test_a_table(cli: Commands, project: Project, config: str) -> None:
    shown = cli.ok("--config", config, "pack", str(project.root), "--dry-run")
    assert shown.splitlines()[:5] == [
        "tokens  place     file",
        "    26  inline    project/key.py        1 redacted",
        "    29  inline    project/src/a.py",
        "   320  store     project/src/large.py",
        "     0  left_out  project/logo.png      binary",
    ]
    assert "inline: 2 files, 55 tokens" in shown
    assert "counted as o200k; files may take 150" in shown
    assert "1 secrets would be taken out" in shown


def test_json_and_attachments(
    cli: Commands, project: Project, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    arguments = ("pack", "src/a.py", "--attach", "key.py", "--dry-run")
    answer: Any = cli.json("--config", config, *arguments)
    assert {file["path"]: file["place"] for file in answer["files"]} == {
        "project/src/a.py": "inline",
        "project/key.py": "attachment",
    }
    assert answer["messages"] is None
    assert answer["has_list"] is False
    assert answer["tokens"]["room"] == 150


def test_the_prompt(cli: Commands, project: Project, config: str) -> None:
    shown = cli.ok("--config", config, "pack", str(project.root), "--instructions", "Why?")
    assert files_in(shown).keys() == {"key.py", "src/a.py"}
    assert "9f8e7d6c5b4a39281706" not in shown
    assert shown.endswith("\nWhy?\n")


def test_counts_are_kept_for_the_next_command(cli: Commands, project: Project, config: str) -> None:
    cli.ok("put", "any", stdin="something")
    cli.ok("--config", config, "pack", str(project.root), "--dry-run")
    kept = json.loads((cli.data / CACHE_FILE).read_bytes())
    assert kept["folders"][str(project.root / "src")].keys() == {"a.py", "large.py"}


def test_refusals(cli: Commands, project: Project, config: str, tmp_path: Path) -> None:
    assert cli.error("pack", str(project.root)) == (1, "NOT_CONFIGURED")
    assert cli.error("--config", config, "pack", str(tmp_path)) == (6, "FORBIDDEN")
    missing = str(project.root / "missing")
    assert cli.error("--config", config, "pack", missing) == (4, "NOT_FOUND")
    wrong = ("pack", str(project.root), "--assistant", "nobody")
    assert cli.error("--config", config, *wrong) == (3, "INVALID_ARGUMENT")


def test_count_tokens(cli: Commands, project: Project, config: str) -> None:
    cli.ok("put", "any", stdin="something")
    arguments = json.dumps({"paths": ["."]})
    answer = json.loads(cli.ok("--config", config, "call", "count_tokens", arguments))
    assert answer == {
        "assistant": "reviewer",
        "encoding": "o200k",
        "files": 3,
        "tokens": 375,
        "room": 150,
        "in_prompt": 2,
        "in_store": 1,
        "largest": [
            {"path": "project/src/large.py", "tokens": 320},
            {"path": "project/src/a.py", "tokens": 29},
            {"path": "project/key.py", "tokens": 26},
        ],
        "left_out": [{"path": "project/logo.png", "why": "binary"}],
        "left_out_count": 1,
    }


def test_a_session_goes_on(cli: Commands, project: Project, config: str) -> None:
    assistant = project.assistant(inline_tokens=150)
    packed = build(assistant, None, Ask("First?", context=(".",)))
    key = SessionKey(LOCAL.key_id, "reviewer", "s1")
    step = state.Step(packed.state, {}, Usage(), 0.0, is_first=True)

    def work(writer: Writer) -> None:
        writer.sessions.lease(key, "t:1", now_us=1, until_us=2)
        state.record(writer, key, "t:1", assistant, SessionState(), step, 1)

    async def record() -> None:
        store = backend_of(cli.data).open(Limits())
        try:
            await store.write(LOCAL.tenant, work)
        finally:
            store.close()

    asyncio.run(record())
    project.words("src/a.py", 11)
    arguments = ("--config", config, "pack", str(project.root), "--dry-run", "--session")
    later = cli.json(*arguments, "s1")
    assert {file["path"]: file["place"] for file in later["files"]} == {
        "project/key.py": "unchanged",
        "project/src/a.py": "inline",
        "project/src/large.py": "store",
        "project/logo.png": "left_out",
    }
    assert later["has_list"]
    assert {file["place"] for file in cli.json(*arguments, "s2")["files"]} == {
        "inline",
        "store",
        "left_out",
    }

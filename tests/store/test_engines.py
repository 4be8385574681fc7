"""The fixture that chooses the engine of a test: whatever is started on its folders is on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.drivers.commands import Commands
from tests.drivers.engines import backend_of, engines_for
from tests.drivers.keys import create_key
from tests.drivers.runtimes import Caller, opened
from tests.drivers.server import Server, run_cli

TESTS = Path("tests")


@pytest.mark.engine("sqlite", "postgres", reason="it is the fixture that is tested")
def test_whatever_is_started_is_on_the_engine_of_its_folder(
    data: Path, store_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ZIBALDONE_")]:
        monkeypatch.delenv(name)
    key = create_key(data)
    with Server(data) as server:
        answer = server.client.post(
            "/documents", json={"path": "by/server", "content": "text"}, headers=key.headers
        )
        assert answer.status_code == 201, answer.text
    assert run_cli("put", "by/process", data=data, stdin="text").returncode == 0
    Commands(data).ok("put", "by/command", stdin="text")
    with opened(data) as runtime:
        Caller(runtime)("upload_document", path="by/call", content="text")
    tables = backend_of(data)
    assert type(tables).__name__.lower() == store_engine
    ids = tables.query("SELECT document_id FROM documents ORDER BY document_id")
    assert [name for (name,) in ids] == ["by/call", "by/command", "by/process", "by/server"]


@pytest.mark.parametrize(
    ("file", "marked", "engines"),
    [
        ("keep/test_reads.py", None, ["sqlite", "postgres"]),
        ("keep/test_reads.py", ("sqlite",), ["sqlite"]),
        ("tools/rag/test_fetch.py", None, ["sqlite", "postgres"]),
        ("web/test_access.py", None, ["sqlite", "postgres"]),
        ("web/test_gate.py", None, ["sqlite"]),
        ("web/test_gate.py", ("postgres",), ["postgres"]),
    ],
)
def test_the_engines_of_a_test(
    file: str, marked: tuple[str, ...] | None, engines: list[str]
) -> None:
    assert engines_for(TESTS / file, TESTS, marked) == engines

"""import_documents and preview_import: the way of an import to the store, for the operator only."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from tests.drivers.catalogues import BY_NAME, CATALOGUE
from tests.drivers.commands import Commands
from tests.drivers.runtimes import opened
from tests.exchange.test_batches import incoming
from zibaldone.access.principal import LOCAL
from zibaldone.errors import Forbidden, InvalidArgument
from zibaldone.model.incoming import Imported
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call

TOOLS = ("import_documents", "preview_import")


@pytest.mark.parametrize("tool", TOOLS)
def test_no_profile_offers_them(tool: str) -> None:
    assert BY_NAME[tool].is_local
    assert not [profile.name for profile in CATALOGUE.profiles if tool in profile.tools]


@pytest.mark.parametrize("tool", TOOLS)
def test_only_the_operator_may_call_them(data: Path, tool: str) -> None:
    with opened(data) as runtime:
        call = Call(runtime, LOCAL)
        with pytest.raises(Forbidden, match="for the operator"):
            asyncio.run(call_tool(BY_NAME[tool], call, {"batch": [incoming("a")]}))


def test_a_preview_says_what_an_import_does_and_writes_nothing(data: Path) -> None:
    with opened(data) as runtime, asyncio.Runner() as runner:
        call = Call(runtime, LOCAL, is_operator=True)

        def results(tool: str) -> list[Imported]:
            arguments = {"batch": [incoming("a"), incoming("../b")], "existing": "update"}
            answer = runner.run(call_tool(BY_NAME[tool], call, arguments))
            outcomes: list[Imported] = answer["results"]
            return outcomes

        expected = results("preview_import")
        assert [one.outcome for one in expected] == ["created", "failed"]
        assert results("preview_import") == expected
        assert results("import_documents") == expected
        assert [one.outcome for one in results("preview_import")] == ["unchanged", "failed"]


def test_json_is_not_taken_for_documents(cli: Commands) -> None:
    assert cli("call", "import_documents", '{"batch": [{}]}').exit_code == 3
    assert cli("call", "preview_import", "{}").exit_code == 3


def test_wrong_words_are_refused(data: Path) -> None:
    with opened(data) as runtime:
        call = Call(runtime, LOCAL, is_operator=True)
        arguments = {"batch": [incoming("a")], "existing": "perhaps"}
        with pytest.raises(InvalidArgument, match="existing"):
            asyncio.run(call_tool(BY_NAME["import_documents"], call, arguments))


def test_import_and_export_go_through_the_tools(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.md").write_text("# A")
    with caplog.at_level(logging.INFO, logger="zibaldone.audit"):
        cli.ok("import", str(tmp_path / "files"))
        cli.ok("import", str(tmp_path / "files"), "--dry-run")
    assert [record.message.count('"tool":"import_documents"') for record in caplog.records] == [1]

    called: list[str] = []
    real = call_tool

    async def recorded(tool, call, arguments):  # type: ignore[no-untyped-def]
        called.append(tool.name)
        return await real(tool, call, arguments)

    monkeypatch.setattr("zibaldone.cli.session.call_tool", recorded)
    cli.ok("export", str(tmp_path / "out"))
    assert called == ["list_documents", "get_document_for_rewrite", "document_history"]

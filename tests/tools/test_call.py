"""What `call_tool` decides for every tool: permission, deadline, and what an answer may be."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from tests.drivers.answers import check_answer
from tests.drivers.catalogues import CATALOGUE, OFFERED
from tests.drivers.runtimes import opened
from zibaldone.access.principal import LOCAL, Principal, Tenant
from zibaldone.errors import DeadlineExceeded, Forbidden, InsufficientScope
from zibaldone.store.port import Writer
from zibaldone.tools.call import call_tool
from zibaldone.tools.memory.episodes import in_steps
from zibaldone.tools.spec import AnyTool, Arguments, Call, Runtime, ToolSpec

CHANGING = [tool for tool in OFFERED.values() if tool.effect in ("write", "delete")]
WITHOUT_PATH = {"add_memory", "cancel_job", "clear_graph", "delete_episode"}
"""They are about episodes and jobs."""
WRITING = [tool for tool in CHANGING if tool.name not in WITHOUT_PATH]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "upload_document": {"content": "text"},
    "update_document": {"content": "text"},
    "patch_document": {"old_str": "a", "new_str": "b"},
    "ingest_document": {"text": "text"},
    "rename_document": {"new_path": "mine/b"},
    "restore_document": {"revision": 1},
}


def name_of(tool: AnyTool) -> str:
    return tool.name


@pytest.fixture
def runtime(data: Path) -> Iterator[Runtime]:
    with opened(data) as runtime:
        yield runtime


def called(tool: AnyTool, call: Call, **arguments: Any) -> Any:
    return asyncio.run(call_tool(tool, call, arguments))


class TestPermission:
    @pytest.mark.parametrize("tool", WRITING, ids=name_of)
    def test_a_tool_that_writes_says_which_document(self, tool: AnyTool) -> None:
        assert tool.document is not None

    @pytest.mark.parametrize("path", ["elsewhere/a", "./elsewhere/a", "mine", "mineral/a"])
    @pytest.mark.parametrize("tool", WRITING, ids=name_of)
    def test_a_caller_of_a_folder_writes_only_there(
        self, runtime: Runtime, tool: AnyTool, path: str
    ) -> None:
        caller = Principal("key", Tenant(prefix="mine/"))
        with pytest.raises(Forbidden) as refused:
            called(tool, Call(runtime, caller), path=path, **ARGUMENTS.get(tool.name, {}))
        assert refused.value.details["allowed_prefix"] == "mine/"

    def test_a_path_that_is_made_from_a_file_is_checked_too(
        self, tmp_path: Path, data: Path
    ) -> None:
        (tmp_path / "note.md").write_text("text")
        with opened(data, ingest_roots=[str(tmp_path)]) as runtime:
            call = Call(runtime, Principal("key", Tenant(prefix="mine/")))
            with pytest.raises(Forbidden):
                called(OFFERED["ingest_document"], call, source=str(tmp_path / "note.md"))

    def test_a_caller_of_a_folder_remembers_nothing_elsewhere(self, runtime: Runtime) -> None:
        caller = Principal("key", Tenant(prefix="mine/"))
        with pytest.raises(Forbidden) as refused:
            called(OFFERED["add_memory"], Call(runtime, caller), name="a", episode_body="text")
        assert refused.value.details["allowed_prefix"] == "mine/"

    @pytest.mark.parametrize("tool", CHANGING, ids=name_of)
    def test_a_token_is_told_which_scope_it_lacks(self, runtime: Runtime, tool: AnyTool) -> None:
        caller = Principal("token", effects=frozenset({"read"}), by_token=True)
        with pytest.raises(InsufficientScope) as refused:
            called(tool, Call(runtime, caller), path="a")
        assert refused.value.details == {"scopes": [f"zibaldone:{tool.effect}"]}

    @pytest.mark.parametrize(
        "tool", [tool for tool in CATALOGUE.tools if tool.is_local], ids=name_of
    )
    def test_a_tool_of_the_operator_is_for_no_request(
        self, runtime: Runtime, tool: AnyTool
    ) -> None:
        """Whoever asks: on loopback without keys everybody is LOCAL."""
        with pytest.raises(Forbidden, match="command line"):
            called(tool, Call(runtime, LOCAL))


class Nothing(Arguments):
    pass


class Empty(TypedDict):
    pass


async def _sleep(call: Call, given: Nothing) -> Empty:
    await asyncio.sleep(30)
    return {}


class TestDeadline:
    @pytest.mark.parametrize("tool", CATALOGUE.tools, ids=name_of)
    def test_every_handler_can_be_interrupted(self, tool: AnyTool) -> None:
        assert inspect.iscoroutinefunction(tool.handler)

    def test_a_call_that_takes_too_long(self, runtime: Runtime) -> None:
        tool = ToolSpec(
            "sleep", "Sleep", "Sleep.", Nothing, Empty, "read", _sleep, seconds_max=0.01
        )
        with pytest.raises(DeadlineExceeded):
            called(tool, Call(runtime, LOCAL))


class TestAnswers:
    @pytest.mark.parametrize(
        "answer",
        [
            {"id": "a", "status": "created"},
            {"id": "a", "status": "created", "revision": "1"},
            {"id": "a", "status": "made", "revision": 1},
            {"id": "a", "status": "created", "revision": 1, "more": True},
        ],
    )
    def test_an_answer_that_is_not_as_declared_is_noticed(self, answer: dict[str, Any]) -> None:
        check_answer("upload_document", {"id": "a", "status": "created", "revision": 1})
        with pytest.raises(AssertionError):
            check_answer("upload_document", answer)

    def test_a_document_that_is_missing_is_an_answer_of_get_document(self) -> None:
        check_answer("get_document", {"error": "There is no document 'a'.", "code": "NOT_FOUND"})
        with pytest.raises(AssertionError):
            check_answer("get_document", {"document_id": "a"})


async def _waits_and_fails(call: Call, given: Nothing) -> Empty:
    try:
        await asyncio.sleep(30)
    finally:
        await asyncio.sleep(0)
    return {}


class TestWaiting:
    """The first step of a handler runs without a timer; what it waits for afterwards has one."""

    def test_an_answer_after_several_waits(self, runtime: Runtime) -> None:
        async def several(call: Call, given: Nothing) -> Any:
            first = await asyncio.to_thread(lambda: 1)
            second = await asyncio.sleep(0, 2)
            return {"sum": first + second}

        tool = ToolSpec("several", "Several", "Wait.", Nothing, Empty, "read", several)
        assert called(tool, Call(runtime, LOCAL)) == {"sum": 3}

    def test_a_failure_of_what_is_awaited_reaches_the_handler(self, runtime: Runtime) -> None:
        async def forgiving(call: Call, given: Nothing) -> Any:
            try:
                await asyncio.to_thread(lambda: 1 / 0)
            except ZeroDivisionError:
                return {"forgiven": True}

        tool = ToolSpec("forgiving", "Forgiving", "Wait.", Nothing, Empty, "read", forgiving)
        assert called(tool, Call(runtime, LOCAL)) == {"forgiven": True}

    def test_a_handler_that_is_interrupted_cleans_up(self, runtime: Runtime) -> None:
        tool = ToolSpec(
            "slow", "Slow", "Wait.", Nothing, Empty, "read", _waits_and_fails, seconds_max=0.01
        )
        with pytest.raises(DeadlineExceeded):
            called(tool, Call(runtime, LOCAL))

    def test_a_caller_that_is_cancelled_cancels_the_handler(self, runtime: Runtime) -> None:
        seen: list[str] = []

        async def watched(call: Call, given: Nothing) -> Empty:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            return {}

        tool = ToolSpec("watched", "Watched", "Wait.", Nothing, Empty, "read", watched)

        async def cancel() -> None:
            task = asyncio.create_task(call_tool(tool, Call(runtime, LOCAL), {}))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        assert seen == ["cancelled"]


def test_a_deadline_in_the_middle_of_a_write_ends_a_call_of_many(runtime: Runtime) -> None:
    """That write is awaited, and told of; the next one must not begin."""
    steps = 0

    def delete_some(_: Writer) -> int:
        nonlocal steps
        steps += 1
        time.sleep(0.1)
        return int(steps < 20)

    async def delete(call: Call, given: Nothing) -> Empty:
        await in_steps(call, delete_some)
        return {}

    tool = ToolSpec(
        "delete", "Delete", "Delete.", Nothing, Empty, "delete", delete, seconds_max=0.05
    )
    with pytest.raises(DeadlineExceeded):
        called(tool, Call(runtime, LOCAL))
    assert steps <= 2

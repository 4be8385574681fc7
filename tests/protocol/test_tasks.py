"""MCP tasks: jobs of the queue for clients that declare the extension, each seen by its own key."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from tests.clients.conformance import COMMAND
from tests.drivers.in_process import application, post
from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import MODERN, Mcp, modern_headers, modern_meta, text_of
from tests.drivers.server import Server
from zibaldone.access.principal import Tenant
from zibaldone.limits import JOBS_OPEN_PER_KEY_MAX
from zibaldone.model.job import NewJob
from zibaldone.protocol.tasks import EXTENSION
from zibaldone.store.port import Store
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec

DECLARED: dict[str, Any] = {
    "_meta": {CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION: {}}}}
}
ENDED = {"completed", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class Caller:
    mcp: Mcp

    def start(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.result("tools/call", name=tool, arguments=arguments)

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        return self.mcp.result(method, {**params, **DECLARED})

    def error(self, method: str, **params: Any) -> dict[str, Any]:
        return self.mcp.error(method, {**params, **DECLARED})

    def get(self, task_id: str) -> dict[str, Any]:
        return self.result("tasks/get", taskId=task_id)

    def get_named(self, task_id: str, name: str | None) -> httpx.Response:
        """`tasks/get` with this header Mcp-Name, or without one."""
        params = {"taskId": task_id, "_meta": {**modern_meta(), **DECLARED["_meta"]}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params}
        stated = {"mcp-protocol-version": MODERN, "mcp-method": "tasks/get"}
        return self.mcp.post(body, **stated, **({} if name is None else {"mcp-name": name}))

    def ended(self, task_id: str) -> dict[str, Any]:
        deadline_s = time.monotonic() + 30
        while (task := self.get(task_id))["status"] not in ENDED:
            assert time.monotonic() < deadline_s, task
            time.sleep(0.05)
        return task


@dataclass(frozen=True, slots=True)
class Served:
    server: Server
    keys: tuple[Key, Key, Key, Key]

    def caller(self, number: int) -> Caller:
        headers = self.keys[number].headers
        return Caller(Mcp(self.server.client, version=MODERN, headers=headers))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two keys of one namespace, one of another, and one that only fills its own queue."""
    data = tmp_path_factory.mktemp("tasks") / "data"
    admin = ("--effect", "read", "--effect", "admin")
    keys = (
        create_key(data, "--namespace", "one", "--effect", "read"),
        create_key(data, "--namespace", "one", *admin),
        create_key(data, "--namespace", "two", *admin),
        create_key(data, "--namespace", "one", "--effect", "read"),
    )
    with Server(data, command=COMMAND) as server:
        yield Served(server, keys)


@pytest.fixture(scope="module")
def caller(served: Served) -> Caller:
    return served.caller(0)


class TestLife:
    def test_a_call_is_answered_with_a_task_and_the_task_with_the_result(
        self, caller: Caller
    ) -> None:
        task = caller.start("slow_compute", seconds=0, label="x")
        assert task["resultType"] == "task"
        assert "content" not in task
        assert task["status"] in {"working", "completed"}
        assert task["ttlMs"] > 0
        assert task["pollIntervalMs"] > 0
        ended = caller.ended(task["taskId"])
        assert ended["resultType"] == "complete"
        assert ended["status"] == "completed"
        assert ended["createdAt"] == task["createdAt"]
        assert ended["lastUpdatedAt"] >= ended["createdAt"]
        assert ended["result"]["isError"] is False
        assert text_of(ended["result"]) == {"text": "slow_compute: x"}
        assert ended["result"]["structuredContent"] == {"text": "slow_compute: x"}

    @pytest.mark.parametrize(
        ("tool", "code", "message"),
        [
            ("failing_job", "JOB_FAILED", "This job fails, as it should."),
            ("refused_job", "INVALID_ARGUMENT", "The model refused it."),
        ],
    )
    def test_a_tool_that_fails_completes_with_an_error(
        self, caller: Caller, tool: str, code: str, message: str
    ) -> None:
        ended = caller.ended(caller.start(tool)["taskId"])
        assert ended["status"] == "completed"
        assert ended["result"]["isError"] is True
        assert text_of(ended["result"]) == {"code": code, "message": message}

    def test_a_server_that_fails_tells_nothing_of_why(self, caller: Caller) -> None:
        ended = caller.ended(caller.start("protocol_error_job")["taskId"])
        assert ended["status"] == "failed"
        assert ended["error"]["code"] == -32603
        assert "on purpose" not in str(ended)
        assert "result" not in ended

    def test_what_runs_can_be_cancelled_and_what_has_ended_stays(self, caller: Caller) -> None:
        task_id = caller.start("slow_compute", seconds=60)["taskId"]
        answer = caller.result("tasks/cancel", taskId=task_id)
        assert answer.keys() == {"resultType", "_meta"}
        assert caller.ended(task_id)["status"] == "cancelled"
        failed = caller.start("failing_job")["taskId"]
        before = caller.ended(failed)
        assert caller.result("tasks/cancel", taskId=failed)["resultType"] == "complete"
        assert caller.get(failed) == before

    def test_an_update_is_acknowledged_and_changes_nothing(self, caller: Caller) -> None:
        task_id = caller.start("failing_job")["taskId"]
        before = caller.ended(task_id)
        answer = caller.result("tasks/update", taskId=task_id, inputResponses={"x": {}})
        assert answer.keys() == {"resultType", "_meta"}
        assert caller.get(task_id) == before
        assert caller.error("tasks/update", taskId=task_id)["code"] == -32602

    def test_the_task_is_stored_before_it_is_answered(self, served: Served) -> None:
        caller = served.caller(0)
        task_id = caller.start("slow_compute", seconds=1, label="later")["taskId"]
        served.server.kill()
        served.server.start()
        assert caller.get(task_id)["status"] == "working"
        assert caller.result("tasks/cancel", taskId=task_id)["resultType"] == "complete"


class TestDeclaring:
    def test_without_the_extension_a_call_is_answered_as_ever(self, caller: Caller) -> None:
        result = caller.mcp.result(
            "tools/call", {"name": "slow_compute", "arguments": {"seconds": 0, "label": "x"}}
        )
        assert result["resultType"] == "complete"
        assert text_of(result) == {"text": "slow_compute: x"}

    @pytest.mark.parametrize("extensions", [None, [EXTENSION], {EXTENSION: None}, {"other": {}}])
    def test_what_is_no_declaration_is_none(self, caller: Caller, extensions: object) -> None:
        meta = {"_meta": {CLIENT_CAPABILITIES_META_KEY: {"extensions": extensions}}}
        params = {"name": "slow_compute", "arguments": {}, **meta}
        assert caller.mcp.result("tools/call", params)["resultType"] == "complete"

    @pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
    def test_without_it_there_are_no_tasks(self, caller: Caller, method: str) -> None:
        answer = caller.mcp.rpc(method, {"taskId": "x", "inputResponses": {}})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}

    def test_older_clients_are_never_answered_with_a_task(self, caller: Caller) -> None:
        legacy = Mcp(caller.mcp.client, version="2025-11-25", headers=caller.mcp.headers)
        params = {"name": "slow_compute", "arguments": {}, **DECLARED}
        assert "taskId" not in legacy.result("tools/call", params)
        assert legacy.error("tasks/get", {"taskId": "x", **DECLARED})["code"] == -32601

    def test_only_paths_with_such_tools_offer_it(self, caller: Caller) -> None:
        assert caller.result("server/discover")["capabilities"]["extensions"] == {EXTENSION: {}}
        other = Caller(Mcp(caller.mcp.client, "/mcp-readonly", MODERN, headers=caller.mcp.headers))
        assert "extensions" not in other.result("server/discover")["capabilities"]
        assert other.error("tasks/get", taskId="x")["code"] == -32601

    def test_arguments_are_checked_before_there_is_a_task(self, caller: Caller) -> None:
        result = caller.start("slow_compute", seconds="long")
        assert result["isError"] is True
        assert text_of(result)["code"] == "INVALID_ARGUMENT"


class TestHeaders:
    @pytest.mark.parametrize("name", ["other", None])
    def test_the_header_names_the_task(self, caller: Caller, name: str | None) -> None:
        task_id = caller.start("failing_job")["taskId"]
        answer = caller.get_named(task_id, name)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == -32020
        assert caller.get_named(task_id, task_id).status_code == 200


class TestIsolation:
    @pytest.mark.parametrize("other", [1, 2], ids=["another key", "another namespace"])
    @pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
    def test_a_task_of_another_key_is_as_if_it_never_was(
        self, served: Served, caller: Caller, method: str, other: int
    ) -> None:
        task_id = caller.start("slow_compute", seconds=60, label="secret")["taskId"]
        missing = task_id[:-4] + ("0000" if task_id[-4:] != "0000" else "1111")
        stranger = served.caller(other)
        answers = [
            stranger.error(method, taskId=asked, inputResponses={}) for asked in (task_id, missing)
        ]
        assert answers[0]["code"] == -32602
        assert answers[0]["message"].replace(task_id, missing) == answers[1]["message"]
        assert answers[0].keys() == answers[1].keys()
        assert caller.get(task_id)["status"] == "working"
        caller.result("tasks/cancel", taskId=task_id)

    def test_the_tools_for_jobs_show_others_only_that_it_is_there(
        self, served: Served, caller: Caller
    ) -> None:
        task_id = caller.start("refused_job")["taskId"]
        caller.ended(task_id)
        paths = {"own": served.keys[0], "other": served.keys[1]}
        seen = {
            who: served.server.client.get(f"/jobs/{task_id}", headers=key.headers).json()
            for who, key in paths.items()
        }
        assert seen["own"]["payload"] == {"tool": "refused_job"}
        assert "refused" in seen["own"]["error"]
        assert seen["other"]["state"] == "parked"
        assert seen["other"]["payload"] == {}
        assert seen["other"]["result"] is None
        assert "refused" not in str(seen["other"])
        listed = served.server.client.get("/jobs", headers=paths["other"].headers).text
        assert task_id in listed
        assert "The model refused" not in listed

    @pytest.mark.parametrize(
        "task_id", ["", "x" * 10_000, "\u00e9\u0000", "sync-2026-01-01T00:00:00Z", "' OR 1=1 --"]
    )
    def test_any_text_may_be_asked_for(self, caller: Caller, task_id: str) -> None:
        encoded = base64.b64encode(task_id.encode()).decode()
        answer = caller.get_named(task_id, f"=?base64?{encoded}?=")
        assert answer.status_code in (400, 431)
        assert len(answer.content) < 1_000
        if answer.status_code == 400:
            assert answer.json()["error"]["code"] == -32602


def test_a_key_cannot_fill_the_queue(served: Served) -> None:
    caller = served.caller(3)
    started = [caller.start("slow_compute", seconds=100) for _ in range(JOBS_OPEN_PER_KEY_MAX)]
    refused = caller.start("slow_compute", seconds=100)
    assert refused["isError"] is True
    assert text_of(refused)["code"] == "TOO_MANY_REQUESTS"
    assert served.caller(0).start("slow_compute", seconds=0)["resultType"] == "task"
    for task in started:
        caller.result("tasks/cancel", taskId=task["taskId"])
    assert caller.start("slow_compute", seconds=0)["resultType"] == "task"


class NoArguments(Arguments):
    pass


def test_a_task_is_looked_at_in_the_turn_of_its_key(data: Path) -> None:
    """Not in that of the background work, which one key could then hold up for all."""
    stores: list[Store] = []

    async def handle(call: Call, given: NoArguments) -> Answer:
        stores.append(call.runtime.store)
        return {}

    tool = ToolSpec(
        name="noted",
        title="noted",
        description="noted",
        arguments=NoArguments,
        result=Answer,
        effect="read",
        handler=handle,
        job=lambda call, given: NewJob("noted"),
    )

    async def ask(app: Any, method: str, params: dict[str, Any]) -> httpx.Response:
        params = {**params, "_meta": {**modern_meta(), **DECLARED["_meta"]}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await post(app, "/mcp-noted", message, modern_headers(method, params))

    async def run(app: Any) -> None:
        params = {"name": "noted", "arguments": {}, "_meta": modern_meta()}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        await post(app, "/mcp-noted", message, modern_headers("tools/call", params))
        may_end = threading.Event()
        background = [
            asyncio.create_task(stores[0].read(Tenant(), lambda _: may_end.wait(30)))
            for _ in range(64)
        ]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(10):
                for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                    answer = await ask(app, method, {"taskId": "unknown", "inputResponses": {}})
                    assert "Unknown task" in answer.text
        finally:
            may_end.set()
            await asyncio.gather(*background)

    with application(data, tool, profiles={"noted": ["noted"]}) as app:
        asyncio.run(run(app))

"""The protocol and the session, against a server that records what it is asked."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

import zibaldone
from tests.drivers.graphiti_server import GraphitiServer
from tests.drivers.memory_server import Answer, Asked, Reply, as_json, envelope, rpc_error
from tests.drivers.zibaldone_stub import ZibaldoneStub
from tests.push.clock import Clock
from zibaldone.errors import (
    ConfigurationError,
    RemoteDenied,
    RemoteFailed,
    RemoteUnavailable,
)
from zibaldone.push.memory import Memory
from zibaldone.push.remote import McpClient

STATUS: tuple[str, dict[str, Any]] = ("get_status", {})


def call(client: McpClient, tool: str = "get_status", **arguments: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(run())


def client_of(url: str, clock: Clock | None = None, **more: Any) -> McpClient:
    return McpClient(url, retry=(clock or Clock()).retry(), **more)


class TestProtocol:
    @pytest.mark.requirement("SC-01", "SC-02", "SC-09", "X-37")
    def test_what_is_sent(self, graphiti: GraphitiServer) -> None:
        call(client_of(graphiti.url), "add_memory", name="n", episode_body="b")
        redirected, first, _, second = graphiti.asked
        assert redirected.path == "/mcp/"
        assert (first.method, first.path) == ("POST", "/mcp")
        assert redirected.raw == first.raw
        assert first.message == {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2024-11-05",
                "capabilities": {},
                "clientInfo": {"name": "zibaldone-push", "version": zibaldone.__version__},
            },
        }
        assert second.message == {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "add_memory", "arguments": {"name": "n", "episode_body": "b"}},
        }
        assert first.headers["content-type"] == "application/json"

    @pytest.mark.requirement("SC-03", "SC-04")
    def test_the_session_id_of_the_answer_goes_with_calls(self, graphiti: GraphitiServer) -> None:
        call(client_of(graphiti.url))
        (session_id,) = graphiti.sessions
        assert [asked.headers.get("mcp-session-id") for asked in graphiti.asked] == [
            *(None, None),
            *(session_id, session_id),
        ]

    @pytest.mark.requirement("X-04")
    def test_both_types_are_accepted(self, graphiti: GraphitiServer) -> None:
        call(client_of(graphiti.url))
        assert {asked.headers["accept"] for asked in graphiti.asked} == {
            "application/json, text/event-stream"
        }

    @pytest.mark.requirement("SC-07", "SC-24")
    def test_posts_only_and_no_logout(self, graphiti: GraphitiServer) -> None:
        call(client_of(graphiti.url))
        assert {(asked.method, asked.path) for asked in graphiti.asked} == {
            ("POST", "/mcp/"),
            ("POST", "/mcp"),
        }
        assert [asked.rpc_method for asked in graphiti.asked][1:] == [
            *("initialize", "notifications/initialized", "tools/call")
        ]

    @pytest.mark.requirement("SC-08")
    def test_ids_increase(self, stub: ZibaldoneStub) -> None:
        async def run() -> None:
            async with client_of(stub.url) as client:
                for _ in range(5):
                    await client.call_tool(*STATUS)

        asyncio.run(run())
        ids = [asked.message["id"] for asked in stub.asked if "id" in asked.message]
        assert ids == list(range(1, 7))

    def test_a_packed_answer_is_not_unpacked(self, stub: ZibaldoneStub) -> None:
        """A hundred bytes could become gigabytes, layer upon layer."""

        def packed(asked: Asked) -> Reply:
            answer = as_json(envelope(asked, {}))
            return Answer(200, gzip.compress(answer.body), {"Content-Encoding": "gzip"})

        stub.behaviour = packed
        with pytest.raises(RemoteUnavailable, match="not of MCP"):
            call(client_of(stub.url))
        assert stub.asked[0].headers["accept-encoding"] == "identity"

    def test_a_redirect_to_another_server_is_refused(self, stub: ZibaldoneStub) -> None:
        stub.behaviour = lambda asked: Answer(307, b"", {"Location": "http://example.org/mcp"})
        with pytest.raises(RemoteFailed, match="another server"):
            call(client_of(stub.url, api_key="secret"))
        assert len(stub.asked) == 1

    def test_a_redirect_keeps_the_scheme_and_the_port(self, stub: ZibaldoneStub) -> None:
        """As behind a proxy, where the server names an address that only the proxy can reach."""

        def redirect(asked: Asked) -> Reply | None:
            if asked.path == "/mcp/":
                return Answer(307, b"", {"Location": "http://127.0.0.1:1/inner"})
            return None

        stub.behaviour = redirect
        assert call(client_of(stub.url)) == {"status": "ok"}
        assert stub.asked[-1].path == "/inner"

    def test_a_redirect_in_circles_ends(self, stub: ZibaldoneStub) -> None:
        stub.behaviour = lambda asked: Answer(308, b"", {"Location": asked.path})
        with pytest.raises(RemoteFailed, match="in circles"):
            call(client_of(stub.url))

    def test_the_key_goes_in_a_header(self, stub: ZibaldoneStub) -> None:
        call(client_of(stub.url, api_key="zk_secret"))
        assert {asked.headers["authorization"] for asked in stub.asked} == {"Bearer zk_secret"}

    def test_what_is_no_url(self) -> None:
        for url in ("ftp://a/b", "localhost:8321", "http://"):
            with pytest.raises(ConfigurationError):
                McpClient(url)


def answering(body: str, content_type: str) -> Any:
    """A behaviour that answers calls of tools with this body, in which $ID is their id."""

    def behaviour(asked: Asked) -> Reply | None:
        if not asked.tool:
            return None
        filled = body.replace("$ID", str(asked.message["id"]))
        return Answer(200, filled.encode(), {"Content-Type": content_type})

    return behaviour


RESULT = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"%s"}]}}'


class TestAnswers:
    @pytest.mark.requirement("SC-05")
    def test_the_data_line_of_an_event(self, stub: ZibaldoneStub) -> None:
        body = f"event: message\ndata: {RESULT % 'ok'}\n\n"
        stub.behaviour = answering(body, "text/event-stream; charset=utf-8")
        assert call(client_of(stub.url)) == {"message": "ok"}

    @pytest.mark.requirement("SC-06", "X-04")
    def test_the_first_answer_wins(self, stub: ZibaldoneStub) -> None:
        body = f": hello\r\ndata: {RESULT % 'one'}\r\n\r\ndata: {RESULT % 'two'}\r\n\r\n"
        stub.behaviour = answering(body, "text/event-stream")
        assert call(client_of(stub.url)) == {"message": "one"}

    @pytest.mark.requirement("SC-06")
    def test_notifications_before_it_do_not_count(self, stub: ZibaldoneStub) -> None:
        progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
        body = f"data:{progress}\n\ndata:{RESULT % 'one'}"
        stub.behaviour = answering(body, "text/event-stream")
        assert call(client_of(stub.url)) == {"message": "one"}

    @pytest.mark.requirement("X-04")
    def test_data_in_several_lines(self, stub: ZibaldoneStub) -> None:
        pretty = json.dumps(json.loads(RESULT.replace("$ID", "0") % "one"), indent=1)
        pretty = pretty.replace('"id": 0', '"id": $ID')
        body = "".join(f"data: {line}\n" for line in pretty.splitlines()) + "\n"
        stub.behaviour = answering(body, "text/event-stream")
        assert call(client_of(stub.url)) == {"message": "one"}

    @pytest.mark.requirement("X-04")
    @pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", ""])
    def test_json_without_a_data_line(self, stub: ZibaldoneStub, content_type: str) -> None:
        stub.behaviour = answering(RESULT % "one", content_type)
        assert call(client_of(stub.url)) == {"message": "one"}

    @pytest.mark.parametrize(
        "result",
        [
            {"content": [{"type": "text", "text": "no disk"}], "isError": True},
            {"content": [{"type": "text", "text": '{"error": "no disk"}'}], "isError": False},
            {"structuredContent": {"result": {"error": "no disk"}}, "isError": False},
            {"structuredContent": {"error": {"code": "X", "message": "no disk"}}},
        ],
    )
    def test_errors_in_disguise(self, stub: ZibaldoneStub, result: dict[str, Any]) -> None:
        stub.behaviour = lambda asked: as_json(envelope(asked, result)) if asked.tool else None
        with pytest.raises(RemoteFailed, match="no disk"):
            call(client_of(stub.url))
        assert len(stub.calls("get_status")) == 1

    def test_an_answer_to_another_request_is_none(self, stub: ZibaldoneStub) -> None:
        stub.behaviour = answering((RESULT % "one").replace("$ID", "99"), "application/json")
        with pytest.raises(RemoteUnavailable, match="incomplete"):
            call(client_of(stub.url))


class TestSession:
    @pytest.mark.requirement("SC-19")
    def test_nothing_is_asked_before_the_first_call(self, stub: ZibaldoneStub) -> None:
        async def run() -> None:
            async with client_of(stub.url) as client:
                Memory(client)

        asyncio.run(run())
        assert stub.asked == []

    @pytest.mark.requirement("SC-20")
    def test_one_session_for_twenty_calls(self, graphiti: GraphitiServer) -> None:
        async def run() -> None:
            async with client_of(graphiti.url) as client:
                for _ in range(20):
                    await client.call_tool(*STATUS)

        asyncio.run(run())
        assert len(graphiti.calls("get_status")) == 20
        assert len(graphiti.sessions) == 1

    @pytest.mark.requirement("SC-21")
    def test_calls_at_once_share_the_first_session(self, graphiti: GraphitiServer) -> None:
        async def run() -> None:
            async with client_of(graphiti.url) as client:
                await asyncio.gather(*(client.call_tool(*STATUS) for _ in range(10)))

        asyncio.run(run())
        assert len(graphiti.calls("get_status")) == 10
        assert len(graphiti.sessions) == 1

    @pytest.mark.requirement("SC-22", "X-03")
    def test_a_server_without_sessions(self, stub: ZibaldoneStub) -> None:
        def without_session(asked: Asked, reply: Reply) -> Reply:
            assert isinstance(reply, Answer)
            kept = {name: value for name, value in reply.headers.items() if "Session" not in name}
            return Answer(reply.status, reply.body, kept)

        stub.after = without_session
        with pytest.raises(RemoteFailed, match="did not return a session id"):
            call(client_of(stub.url, needs_session=True))
        assert stub.calls("get_status") == []
        assert call(client_of(stub.url)) == {"status": "ok"}
        assert "mcp-session-id" not in stub.asked[-1].headers

    @pytest.mark.requirement("SC-23")
    def test_one_connection_for_everything(self, graphiti: GraphitiServer) -> None:
        call(client_of(graphiti.url))
        assert {asked.connection for asked in graphiti.asked} == {1}

    @pytest.mark.requirement("SC-25", "X-31")
    def test_a_failed_start_is_not_remembered(self, stub: ZibaldoneStub) -> None:
        failures = [as_json({}, 500)]

        def behaviour(asked: Asked) -> Reply | None:
            return failures.pop() if failures else None

        stub.behaviour = behaviour

        async def run() -> None:
            async with client_of(stub.url) as client:
                with pytest.raises(RemoteFailed):
                    await client.call_tool(*STATUS)
                assert await client.call_tool(*STATUS) == {"status": "ok"}

        asyncio.run(run())

    def test_the_status_is_looked_at_before_the_session(self, stub: ZibaldoneStub) -> None:
        """Graphiti's error replies carry a session id that means nothing."""
        stub.behaviour = lambda asked: as_json({}, 406, **{"Mcp-Session-Id": "none"})
        with pytest.raises(RemoteFailed, match="406"):
            call(client_of(stub.url))
        assert len(stub.asked) == 1

    def test_a_forgotten_session_is_begun_again_once(self, graphiti: GraphitiServer) -> None:
        def forget(asked: Asked, reply: Reply) -> Reply:
            graphiti.sessions.clear()
            return reply

        async def run() -> None:
            async with client_of(graphiti.url) as client:
                await client.call_tool(*STATUS)
                graphiti.restart()
                await client.call_tool(*STATUS)
                graphiti.after = forget
                await client.call_tool(*STATUS)
                with pytest.raises(RemoteUnavailable, match="forgets a session"):
                    await client.call_tool(*STATUS)

        asyncio.run(run())

    @pytest.mark.requirement("SC-37")
    def test_the_health_check_is_a_post(self, graphiti: GraphitiServer) -> None:
        async def run() -> tuple[str, str]:
            async with client_of(graphiti.url) as client:
                return (await client.server()).name, await Memory(client).status()

        assert asyncio.run(run()) == ("Graphiti Agent Memory", "ok")
        assert {asked.method for asked in graphiti.asked} == {"POST"}


class TestDenied:
    @pytest.mark.parametrize("status", [401, 403])
    def test_is_told_at_once(self, stub: ZibaldoneStub, status: int) -> None:
        stub.behaviour = lambda asked: as_json({"error": "no"}, status)
        with pytest.raises(RemoteDenied, match="API key"):
            call(client_of(stub.url))
        assert len(stub.asked) == 1


def test_a_json_rpc_error_of_the_handshake(stub: ZibaldoneStub) -> None:
    stub.behaviour = lambda asked: as_json(rpc_error(asked, -32601, "no such method"))
    with pytest.raises(RemoteFailed, match="no such method"):
        call(client_of(stub.url))

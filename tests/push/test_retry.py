"""What is tried again, how often, and with which waits: a real server and a clock of our own."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from tests.drivers.memory_server import Answer, Asked, Broken, Reply, as_json, rpc_error
from tests.drivers.server import free_port
from tests.drivers.zibaldone_stub import ZibaldoneStub
from tests.push.clock import Clock
from tests.push.test_remote import call
from zibaldone.errors import DeadlineExceeded, RemoteFailed, RemoteUnavailable, ZibaldoneError
from zibaldone.push.remote import McpClient
from zibaldone.push.retry import retry_after_seconds


def failing(times: int, reply: Reply) -> Any:
    """A behaviour that fails the first calls of tools."""
    left = itertools.count(times, -1)
    return lambda asked: reply if asked.tool and next(left) > 0 else None


def try_call(
    url: str, clock: Clock, tries: int = 4, **more: Any
) -> dict[str, Any] | ZibaldoneError:
    try:
        return call(McpClient(url, retry=clock.retry(tries), **more))
    except ZibaldoneError as error:
        return error


class TestRetried:
    @pytest.mark.requirement("SC-26")
    def test_no_answer_in_time(self, stub: ZibaldoneStub) -> None:
        is_slow, event = [False, True], threading.Event()

        def behaviour(asked: Asked) -> Reply | None:
            if asked.tool and is_slow.pop():
                event.wait(5)
            return None

        clock = Clock()
        stub.behaviour = behaviour
        answer = try_call(stub.url, clock, request_seconds_max=0.3)
        event.set()
        assert answer == {"status": "ok"}
        assert clock.waits == [0.5]

    @pytest.mark.requirement("SC-27")
    def test_refused(self) -> None:
        clock = Clock()
        error = try_call(f"http://127.0.0.1:{free_port()}/mcp", clock)
        assert isinstance(error, RemoteUnavailable)
        assert "Cannot connect" in error.message
        assert clock.waits == [0.5, 1.0, 2.0]

    @pytest.mark.requirement("SC-27")
    @pytest.mark.parametrize(
        "reply", [Broken(), Broken(as_json({"some": "thing"}))], ids=["reset", "cut"]
    )
    def test_reset_and_cut(self, stub: ZibaldoneStub, reply: Reply) -> None:
        clock = Clock()
        stub.behaviour = failing(2, reply)
        assert try_call(stub.url, clock) == {"status": "ok"}
        assert clock.waits == [0.5, 1.0]

    @pytest.mark.requirement("SC-28", "SC-29", "X-32")
    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_statuses(self, stub: ZibaldoneStub, status: int) -> None:
        clock = Clock()
        stub.behaviour = failing(1, as_json({}, status))
        assert try_call(stub.url, clock) == {"status": "ok"}
        assert clock.waits == [0.5]


class TestNotRetried:
    @pytest.mark.requirement("SC-30")
    @pytest.mark.parametrize("status", [400, 406, 413, 422, 500])
    def test_statuses(self, stub: ZibaldoneStub, status: int) -> None:
        clock = Clock()
        stub.behaviour = failing(9, as_json({}, status))
        assert isinstance(try_call(stub.url, clock), RemoteFailed)
        assert len(stub.calls("get_status")) == 1
        assert clock.waits == []

    @pytest.mark.requirement("SC-31")
    def test_not_found(self, stub: ZibaldoneStub) -> None:
        """Without a session there is nothing that a 404 could be about but the URL."""
        clock = Clock()
        stub.behaviour = lambda asked: Answer(404)
        problem = try_call(stub.url, clock)
        assert isinstance(problem, RemoteFailed)
        assert problem.message.startswith(f"Nothing is served at {stub.url}")
        assert "/mcp-memory" in problem.message
        assert len(stub.asked) == 1
        assert clock.waits == []

    @pytest.mark.requirement("SC-32")
    def test_json_rpc_errors(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = lambda asked: (
            as_json(rpc_error(asked, -32000, "timeout ECONNREFUSED")) if asked.tool else None
        )
        assert isinstance(try_call(stub.url, clock), RemoteFailed)
        assert len(stub.calls("get_status")) == 1
        assert clock.waits == []


class TestWaits:
    @pytest.mark.requirement("SC-33", "SC-34", "SC-36", "X-32")
    def test_double_and_end_before_the_last(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = failing(9, as_json({}, 503))
        assert isinstance(try_call(stub.url, clock, tries=4), RemoteUnavailable)
        assert len(stub.calls("get_status")) == 4
        assert clock.waits == [0.5, 1.0, 2.0]

    @pytest.mark.requirement("SC-34")
    @pytest.mark.parametrize("tries", [1, 2, 6])
    def test_as_many_attempts_as_configured(self, stub: ZibaldoneStub, tries: int) -> None:
        stub.behaviour = failing(9, as_json({}, 503))
        try_call(stub.url, Clock(), tries)
        assert len(stub.calls("get_status")) == tries

    @pytest.mark.requirement("SC-35")
    def test_none_after_a_success(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = failing(1, as_json({}, 503))
        assert try_call(stub.url, clock) == {"status": "ok"}
        assert len(stub.calls("get_status")) == 2
        assert clock.waits == [0.5]

    def test_retry_after_is_honoured(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = failing(2, as_json({}, 429, **{"Retry-After": "7"}))
        assert try_call(stub.url, clock) == {"status": "ok"}
        assert clock.waits == [7.0, 7.0]

    def test_jitter_only_lengthens(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = failing(3, as_json({}, 503))
        call(McpClient(stub.url, retry=clock.retry(jitter=0.5)))
        for wait, least in zip(clock.waits, (0.5, 1.0, 2.0), strict=True):
            assert least <= wait <= 1.5 * least

    def test_a_wait_beyond_the_deadline_is_not_begun(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        stub.behaviour = failing(9, as_json({}, 503, **{"Retry-After": "60"}))
        with pytest.raises(RemoteUnavailable):
            call(McpClient(stub.url, retry=clock.retry(seconds=30)))
        assert clock.waits == []

    def test_nothing_is_sent_after_the_deadline(self, stub: ZibaldoneStub) -> None:
        clock = Clock()
        client = McpClient(stub.url, retry=clock.retry(seconds=1))
        clock.now_seconds += 2
        with pytest.raises(DeadlineExceeded):
            call(client)
        assert stub.asked == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("3", 3.0),
        ("1e9", 300.0),
        ("-5", 0.0),
        ("nan", 0.0),
        ("soon", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2099 07:28:00 -0000", 300.0),
    ],
)
def test_retry_after(header: str | None, seconds: float) -> None:
    assert retry_after_seconds(header) == seconds


def test_what_may_have_arrived_is_looked_for_first(stub: ZibaldoneStub) -> None:
    async def look() -> dict[str, Any]:
        return {"found": True}

    async def run(reply: Reply) -> dict[str, Any]:
        stub.behaviour = failing(1, reply)
        async with McpClient(stub.url, retry=Clock().retry()) as client:
            return await client.call_tool("get_status", {}, before_replay=look)

    assert asyncio.run(run(Broken())) == {"found": True}
    assert asyncio.run(run(as_json({}, 504))) == {"found": True}
    assert asyncio.run(run(as_json({}, 429))) == {"status": "ok"}  # certainly not carried out

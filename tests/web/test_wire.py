"""How answers leave: joined, and none after the end was announced. How much is read at once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn.server

from zibaldone.limits import PIPELINED_MAX
from zibaldone.web.http import Endpoint, HttpScope, Receive, Send, send_body
from zibaldone.web.server import server
from zibaldone.web.wire import Connection, H11Connection, JoiningTransport, connection_class


async def received(write_late: bool) -> tuple[bytes, list[str]]:
    """What a peer gets, and what the event loop complained of."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    complaints: list[str] = []
    loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    joining = JoiningTransport(transport, loop)
    joining.write(b"first ")
    joining.write(b"second")
    joining.write_eof()
    if write_late:
        joining.write(b" late")
    await asyncio.sleep(0.05)
    data = await loop.sock_recv(theirs, 100)
    transport.close()
    theirs.close()
    return data, complaints


def test_what_is_written_before_the_end_is_sent() -> None:
    assert asyncio.run(received(write_late=False)) == (b"first second", [])


def test_what_is_written_after_the_end_is_dropped_without_a_traceback() -> None:
    assert asyncio.run(received(write_late=True)) == (b"first second", [])


async def _all_read(scope: HttpScope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send_body(scope, send, 200, b"", ())


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("kind", [connection_class(), H11Connection])
def test_one_connection_that_sends_much_is_read_in_each_step(
    kind: type[Connection], clients: int
) -> None:
    """Others have their turn between; eight megabytes of small chunks take long to parse."""
    uvloop_loop = pytest.importorskip("uvloop").new_event_loop()
    steps: list[int] = []
    step = 0

    class Counted(kind):  # type: ignore[valid-type, misc]
        has_sent_much = False

        def data_received(self, data: bytes) -> None:
            if len(data) >= 1 << 16:
                if self.has_sent_much:  # of the first time, nobody can know before
                    steps.append(step)
                self.has_sent_much = True
            super().data_received(data)

    def on_step() -> None:
        nonlocal step
        step += 1

    def sent(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            head = "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            peer.sendall(head.encode() + b"4000\r\n%s\r\n" % (b"x" * 0x4000) * 500 + b"0\r\n\r\n")
            return peer.recv(100)

    answers = _served(uvloop_loop, Counted, sent, clients, on_step)
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 200"] * clients
    assert len(steps) > 4
    # One whose turn came while nothing had arrived is read when it has, beside the next.
    assert max(Counter(steps).values()) <= clients
    assert len(steps) < 1.5 * len(set(steps))


def test_one_request_that_was_sent_ahead_is_begun_in_each_step() -> None:
    """New connections are accepted once in each step: who comes later waits for all of them."""
    uvloop_loop = pytest.importorskip("uvloop").new_event_loop()
    steps: list[int] = []
    step, clients, requests = 0, 8, PIPELINED_MAX
    kind: Any = connection_class()

    class Counted(kind):  # type: ignore[misc]
        def start_next(self) -> None:
            steps.append(step)
            super().start_next()

    def on_step() -> None:
        nonlocal step
        step += 1

    def sent(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * requests)
            answer = b""
            while answer.count(b"HTTP/1.1 200") < requests:
                answer += peer.recv(1 << 16)
            return answer

    answers = _served(uvloop_loop, Counted, sent, clients, on_step)
    assert len(answers) == clients
    assert len(steps) == clients * (requests - 1)
    assert max(Counter(steps).values()) == 1


async def _refused(scope: HttpScope, receive: Receive, send: Send) -> None:
    await receive()
    await send_body(scope, send, 413, b"too much", ())


CLOSE = "connection: close\r\n"


@pytest.mark.parametrize(
    ("fields", "is_last"),
    [
        (f"content-length: {24 << 20}\r\n", False),
        (f"content-length: {24 << 20}\r\n{CLOSE}", True),
        ("transfer-encoding: chunked\r\n", True),
        (f"transfer-encoding: chunked\r\n{CLOSE}", True),
    ],
    ids=["announced", "announced, last", "chunked", "chunked, last"],
)
@pytest.mark.parametrize("kind", [connection_class(), H11Connection])
def test_who_sends_all_of_it_first_can_read_the_refusal(
    kind: type[Connection], fields: str, is_last: bool
) -> None:
    """To close, or to read no more, while the peer sends would reset the connection."""
    uvloop_loop = pytest.importorskip("uvloop").new_event_loop()
    body = b"%x\r\n" % (24 << 20) if "chunked" in fields else b""
    body += b"x" * (24 << 20)

    def sent(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            peer.sendall(f"POST / HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n".encode() + body)
            answer = b""
            while not answer.endswith(b"too much"):
                answer += peer.recv(100)
            if is_last:
                assert peer.recv(100) == b"", "the end is announced, and it comes"
            return answer.lower()

    (answer,) = _served(uvloop_loop, kind, sent, 1, lambda: None, _refused)
    assert answer.startswith(b"http/1.1 413")
    assert (CLOSE.encode() in answer) == is_last


@pytest.mark.parametrize("kind", [connection_class(), H11Connection])
def test_a_body_of_unknown_length_that_was_read_ends_nothing(kind: type[Connection]) -> None:
    uvloop_loop = pytest.importorskip("uvloop").new_event_loop()
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"

    def sent(port: int) -> bytes:
        answers = b""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            for _ in range(2):
                peer.sendall(head + b"1\r\nx\r\n")
                peer.sendall(b"0\r\n\r\n")
                answers += peer.recv(1000).lower()
        return answers

    (answers,) = _served(uvloop_loop, kind, sent, 1, lambda: None)
    assert answers.count(b"http/1.1 200") == 2
    assert CLOSE.encode() not in answers


@pytest.mark.parametrize("kind", [connection_class(), H11Connection])
def test_a_body_that_waits_for_us_is_not_late(
    kind: type[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, may_read = 0.0, asyncio.Event()
    monkeypatch.setattr("zibaldone.web.connections.time", SimpleNamespace(monotonic=lambda: now_s))

    async def app(scope: HttpScope, receive: Receive, send: Send) -> None:
        await may_read.wait()
        await _all_read(scope, receive, send)

    async def run() -> bytes:
        nonlocal now_s
        async with asyncio.timeout(20), _listening(app, kind) as (port, state):
            answer, peer = await asyncio.open_connection("127.0.0.1", port)
            peer.write(POST % b"content-length: 200001" + b"x" * 200_000)
            while not any(one.is_held_back for one in state.connections):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            for connection in state.connections:
                for _ in range(3):
                    connection.registry.sweep()
                    now_s += 1000
            may_read.set()
            peer.write(b"x")
            status = await answer.readline()
            peer.close()
            return status

    assert b" 200 " in asyncio.run(run())


@pytest.mark.parametrize("field", [b"content-length: 99", b"transfer-encoding: chunked"])
@pytest.mark.parametrize("kind", [connection_class(), H11Connection])
def test_the_end_does_not_wait_for_who_was_answered(kind: type[Connection], field: bytes) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), _listening(_refused, kind) as (port, state):
            answer, peer = await asyncio.open_connection("127.0.0.1", port)
            peer.write(POST % field + b"1\r\nx")
            await answer.readuntil(b"too much")
            for connection in tuple(state.connections):
                connection.shutdown()
            while state.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            peer.close()

    asyncio.run(run())


@pytest.mark.parametrize(("turn", "size"), [("read_on", 1_000_000), ("start_next", 1)])
def test_an_error_of_one_leaves_no_others_waiting(turn: str, size: int) -> None:
    kind: Any = connection_class()
    failed: list[object] = []

    def fail_once(self: Any) -> None:
        if failed:
            getattr(kind, turn)(self)
        else:
            failed.append(self)
            self.transport.abort()
            raise RuntimeError("a fault")

    faulty = type("Faulty", (kind,), {turn: fail_once})
    request = POST % b"content-length: %d" % size + b"x" * size

    async def answers(reader: asyncio.StreamReader) -> int:
        data = b""
        with contextlib.suppress(ConnectionError):
            while data.count(b" 200 ") < 2 and (part := await reader.read(1000)):
                data += part
        return data.count(b" 200 ")

    async def run() -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with asyncio.timeout(20), _listening(_all_read, faulty) as (port, _):
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            for _, peer in opened:
                peer.write(request * 2)
            counts = await asyncio.gather(*(answers(reader) for reader, _ in opened))
            for _, peer in opened:
                peer.close()
            return counts

    answered = asyncio.run(run())
    assert failed
    assert answered.count(2) == 3


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\n%s\r\n\r\n"


@contextlib.asynccontextmanager
async def _listening(app: Endpoint, kind: type[Connection]) -> AsyncIterator[tuple[int, Any]]:
    """A server in this loop: its port, and its connections."""
    loop = asyncio.get_running_loop()
    config = server(app, "127.0.0.1", 0, connection=kind).config
    config.load()
    state = uvicorn.server.ServerState()
    made: Any = config.http_protocol_class
    listening = await loop.create_server(
        lambda: made(config=config, server_state=state, app_state={}, _loop=loop), "127.0.0.1"
    )
    yield listening.sockets[0].getsockname()[1], state
    listening.close()


def _served(
    uvloop_loop: Any,
    kind: type[Connection],
    sent: Callable[[int], bytes],
    clients: int,
    on_step: Callable[[], None],
    app: Endpoint = _all_read,
) -> list[bytes]:
    """What clients are answered that send at the same time; `on_step` at each of the loop's."""

    async def run() -> list[bytes]:
        answers: list[bytes] = []
        async with _listening(app, kind) as (port, state):
            threads = [
                threading.Thread(target=lambda: answers.append(sent(port))) for _ in range(clients)
            ]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) or state.connections:
                on_step()
                await asyncio.sleep(0)
        return answers

    with asyncio.Runner(loop_factory=lambda: uvloop_loop) as runner:
        return runner.run(run())

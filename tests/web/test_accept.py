"""New connections are let in many at a time, however busy the others are."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from zibaldone.limits import Limits
from zibaldone.web.accept import Acceptor
from zibaldone.web.http import HttpScope, Receive, Send, send_body
from zibaldone.web.server import Server, server
from zibaldone.web.wire import connection_class

_CLIENTS = 200
_STEPS_MAX = 20


async def _answered(scope: HttpScope, _: Receive, send: Send) -> None:
    await send_body(scope, send, 200, b"", ())


async def _begun(**options: Any) -> tuple[Server, asyncio.Task[None], tuple[str, int]]:
    loop = asyncio.get_running_loop()
    port: asyncio.Future[int] = loop.create_future()
    serving = server(_answered, "127.0.0.1", 0, started=port.set_result, **options)
    running = loop.create_task(serving.serve())
    return serving, running, ("127.0.0.1", await port)


def test_many_are_let_in_at_each_step_of_the_loop() -> None:
    """uvloop alone lets in one: the last would wait for two hundred steps."""
    kind: Any = connection_class()
    uvloop = pytest.importorskip("uvloop")
    step = 0
    entered_in: list[int] = []

    class Counted(kind):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            entered_in.append(step)
            super().connection_made(transport)

    async def run() -> list[bytes]:
        nonlocal step
        loop = asyncio.get_running_loop()
        serving, running, address = await _begun(connection=Counted)
        # The loop stands still meanwhile: they are all at the door when it goes on.
        peers = [socket.create_connection(address, timeout=5) for _ in range(_CLIENTS)]
        while len(entered_in) < _CLIENTS and step < 2 * _CLIENTS:
            await asyncio.sleep(0)
            step += 1
        answers = []
        for peer in (peers[0], peers[-1]):
            peer.setblocking(False)
            await loop.sock_sendall(peer, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answers.append(await loop.sock_recv(peer, 12))
        serving.should_exit = True
        await running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
        for peer in peers:
            peer.close()
        return answers

    assert uvloop.run(run()) == [b"HTTP/1.1 200"] * 2
    assert len(entered_in) == _CLIENTS
    assert len(set(entered_in)) < _STEPS_MAX


def test_who_comes_in_while_the_server_ends_does_not_keep_it_waiting() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run() -> None:
        serving, running, address = await _begun(limits=Limits(shutdown_seconds_max=600))
        peers: list[socket.socket] = []

        class Late(Acceptor):
            def close(self) -> None:
                peers.extend(socket.create_connection(address, timeout=5) for _ in range(3))
                self._accept()  # they are let in, and enter when the others have been told
                super().close()

        (acceptor,) = serving._acceptors
        acceptor.__class__ = Late
        serving.should_exit = True
        async with asyncio.timeout(30):
            await running
            for peer in peers:
                peer.setblocking(False)
                assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
                peer.close()

    uvloop.run(run())

"""How answers leave: joined, and none after the end was announced."""

from __future__ import annotations

import asyncio
import socket

from zibaldone.web.wire import JoiningTransport


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

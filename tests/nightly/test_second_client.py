"""The second client tells a server that computes from one that waits, and from a busy machine."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.drivers.server import free_port
from tests.nightly.second_client import Late, SecondClient, caused

SERVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    clock = time.process_time if sys.argv[2] == "computes" else time.monotonic
    until = clock() + float(sys.argv[3])
    while clock() < until:
        if sys.argv[2] == "waits":
            time.sleep(0.01)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.close()
"""


def stalls_of(what: str, seconds: float) -> int:
    port = free_port()
    arguments = [sys.executable, "-c", SERVER, str(port), what, str(seconds)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"up\n"
            with SecondClient(port, server.pid) as second:
                began_s = time.monotonic()
                while second.count < 2:
                    assert time.monotonic() - began_s < 60
                    time.sleep(0.05)
            assert set(second.statuses) == {200}
            return len(second.stalls)
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("what", "seconds", "is_stall"),
    [("computes", 1.3, True), ("computes", 0.1, False), ("waits", 1.3, False)],
)
def test_a_server_that_computes_stalls_its_clients(
    what: str, seconds: float, is_stall: bool
) -> None:
    assert bool(stalls_of(what, seconds)) is is_stall


@pytest.mark.parametrize(
    ("waited_s", "late_s", "busy_s", "counts_s"),
    [
        (2.0, 0.0, 1.9, 1.9),  # it computed nearly all the time
        (2.0, 0.0, 0.3, 0.3),  # it computed little: somebody else had the core
        (2.0, 1.5, 1.9, 0.5),  # nobody had a core for most of it
        (20.0, 1.0, 0.0, 19.0),  # stuck, whatever it does
    ],
)
def test_what_counts_of_a_wait(
    waited_s: float, late_s: float, busy_s: float, counts_s: float
) -> None:
    assert caused(waited_s, late_s, busy_s) == counts_s


def test_lateness_counts_only_within_the_wait() -> None:
    late = Late()
    late.add(10.0, 2.0)  # from 8 to 10
    late.add(11.0, 0.01)  # as always
    assert late.between(9.0, 12.0) == 1.0
    assert late.between(5.0, 8.5) == 0.5
    assert late.between(10.5, 12.0) == 0.0

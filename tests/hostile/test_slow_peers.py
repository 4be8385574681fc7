"""Peers that send slowly, do not read, or do nothing at all."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import JSON, SSE
from tests.drivers.raw import raw_request
from tests.drivers.server import Server
from tests.hostile.faulty import FaultyServer
from tests.hostile.peers import Bystander, Peer, call, peers, post_head, resident_mib
from zibaldone.limits import BODY_WAIT_SECONDS_MAX, LINGER_SECONDS_MAX, SEND_BUFFER_BYTES, Limits

MIB = 1 << 20
SECONDS = 1.5
"""Each time limit; connections are looked at once a second."""

QUICK = {
    f"ZIBALDONE_{name}_SECONDS_MAX": str(SECONDS) for name in ("HEAD", "BODY", "WRITE", "IDLE")
}
CLOSED_SECONDS_MAX = SECONDS + 15


@pytest.fixture(scope="module", params=["httptools", "h11"])
def quick(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyServer]:
    data = tmp_path_factory.mktemp("quick") / "data"
    environment = {**QUICK, "HOSTILE_HTTP": request.param}
    with FaultyServer(data, environment=environment) as running:
        running.create("large", "0123456789abcde\n" * (8 * MIB // 16))
        yield running


def trickled(peer: Peer, data: bytes, seconds_max: float) -> float:
    """Send a byte at a time until the server has had enough; how long it took."""
    started_s = time.monotonic()
    peer.socket.settimeout(0.1)
    for number in range(len(data)):
        if not peer.send(data[number : number + 1]) or time.monotonic() - started_s > seconds_max:
            break
        with contextlib.suppress(TimeoutError, ConnectionError):
            peer.socket.recv(1, socket.MSG_PEEK)
            break
    return time.monotonic() - started_s


class TestTimeLimits:
    def test_a_head_that_trickles_in(self, quick: Server) -> None:
        with Bystander(quick), Peer(quick) as peer:
            head = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: " + b"a" * 1000
            assert trickled(peer, head, 20) < CLOSED_SECONDS_MAX
            assert peer.answer().status in (408, 0)

    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_a_body_that_trickles_in(self, quick: Server, accept: str) -> None:
        with Bystander(quick), Peer(quick) as peer:
            body = call("list_documents", {"prefix": "x" * 1000})
            peer.send(post_head("/mcp", len(body), f"accept: {accept}"))
            assert trickled(peer, body, 20) < CLOSED_SECONDS_MAX
            assert peer.answer().status in (408, 0)

    def test_a_long_body_has_the_time_that_it_takes(self, quick: Server) -> None:
        """Slower than the time limit alone would let it be, and faster than is asked for."""
        given = {"path": "slow", "content": "x" * 600_000, "upsert": True}
        body = json.dumps(given).encode()
        with Peer(quick) as peer:
            peer.send(post_head("/documents", len(body), "content-type: application/json"))
            for start in range(0, len(body), len(body) // 8):
                peer.send(body[start : start + len(body) // 8])
                time.sleep((SECONDS + 2.5) / 8)  # connections are looked at once a second
            assert peer.answer().status in (200, 201)

    def test_a_body_that_never_comes(self, quick: Server) -> None:
        with Peer(quick) as peer:
            peer.send(post_head("/documents", 100))
            peer.answer().refused(408, "REQUEST_TIMEOUT")

    def test_a_body_that_nobody_wants(self, quick: Server) -> None:
        """It was answered; the rest is thrown away for a moment, and not for ever."""
        with Peer(quick) as peer:
            peer.send(post_head("/nowhere", 30 * MIB))
            peer.answer().refused(404, "NOT_FOUND")
            end_s = time.monotonic() + 30
            while peer.send(b"x" * 1000) and time.monotonic() < end_s:
                time.sleep(0.05)
            assert time.monotonic() < end_s

    def test_a_body_of_unknown_length_that_nobody_wants(self, quick: Server) -> None:
        """To parse it in small chunks would take long; the connection ends with the answer."""
        head = "POST /nowhere HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        with Bystander(quick) as bystander, peers(quick, 8) as crowd:
            for peer in crowd:
                peer.send(head.encode())
            for peer in crowd:
                peer.answer().refused(404, "NOT_FOUND")
            for peer in crowd:
                assert peer.is_closed(LINGER_SECONDS_MAX / 2)
            for _ in range(40):  # it may go on sending for a while
                for peer in crowd:
                    peer.send(b"1\r\nx\r\n" * 40_000)
            bystander.wait_for_a_round()

    def test_an_idle_connection_is_closed(self, quick: Server) -> None:
        with Peer(quick) as silent, Peer(quick) as used:
            used.send(b"GET /documents?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert used.answer().status == 200
            assert silent.is_closed(CLOSED_SECONDS_MAX)
            assert used.is_closed(CLOSED_SECONDS_MAX)

    def test_a_connection_in_use_is_not(self, quick: Server) -> None:
        with Peer(quick) as peer:
            for _ in range(10):
                peer.send(b"GET /documents?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert peer.answer().status == 200
                time.sleep(SECONDS / 5)  # far below the limit; together far above it

    def test_an_answer_that_is_not_read_is_dropped(self, quick: Server) -> None:
        with Bystander(quick), peers(quick, 4, small=True) as hostile:
            for peer in hostile:
                peer.send(raw_request(b"/documents/large"))
            time.sleep(SECONDS + 3)
            for peer in hostile:
                assert peer.read_to_end() < 6 * MIB, "what the system had taken, and no more"

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a socket holds")
    def test_the_system_holds_little_of_it(self, quick: Server) -> None:
        """It is not counted, and nobody is served while it is copied."""
        with Bystander(quick), peers(quick, 1, small=True) as (peer,):
            peer.send(raw_request(b"/documents/large"))
            peer.socket.recv(1, socket.MSG_PEEK)
            ports = f":{quick.port:04X}", f":{peer.socket.getsockname()[1]:04X}"
            fields = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
            waiting = [
                int(each[4].split(":")[0], 16)
                for each in fields
                if (each[1][-5:], each[2][-5:]) == ports
            ]
            assert 0 < waiting[0] <= 3 * SEND_BUFFER_BYTES

    def test_a_slow_reader_gets_all_of_it(self, tmp_path: Path) -> None:
        with Server(tmp_path / "data", environment=QUICK) as server:
            server.create("large", "0123456789abcde\n" * (MIB // 16))
            with Peer(server, small=True) as peer:
                peer.send(raw_request(b"/documents/large"))
                size, end_s = 0, time.monotonic() + 30
                while part := peer.socket.recv(1 << 12):
                    size += len(part)
                    assert time.monotonic() < end_s
                    time.sleep(0.01)  # slower than the time limit alone would let it be
                assert size > MIB


class TestManyOfThem:
    @pytest.mark.parametrize("accept", [JSON, SSE])
    def test_bodies_that_trickle_in_hold_no_place(self, tmp_path: Path, accept: str) -> None:
        data = tmp_path / "data"
        key = create_key(data)
        with Server(data) as server, peers(server, 80) as hostile:
            server.client.headers.update(key.headers)
            server.create("bystander", "x")
            with Bystander(server, key.headers):
                for peer in hostile:
                    headers = (f"x-api-key: {key.secret}", f"accept: {accept}")
                    peer.send(post_head("/mcp", 1000, *headers) + b"{")
                time.sleep(1)
            refused = [peer for peer in hostile if peer.has_answer()]
            assert len(refused) == 80 - Limits().requests_per_key_max
            for peer in refused:
                peer.answer().refused(429, "TOO_MANY_REQUESTS")

    def test_bodies_one_byte_short_take_bounded_memory(self, tmp_path: Path) -> None:
        """Of two keys, and some wait: for others of their key, or for any room."""
        data = tmp_path / "data"
        keys, other = [create_key(data), create_key(data)], create_key(data)
        environment = {
            "ZIBALDONE_REQUEST_BODY_BYTES_MAX": str(11 * MIB),
            "ZIBALDONE_BYTES_IN_FLIGHT_PER_KEY_MAX": str(21 * MIB),
            "ZIBALDONE_BYTES_IN_FLIGHT_MAX": str(31 * MIB),
        }
        with Server(data, environment=environment) as server, peers(server, 16) as hostile:
            server.client.headers.update(other.headers)
            server.create("bystander", "x")
            before_mib = resident_mib(server)
            body = b"x" * (10 * MIB - 1)
            with Bystander(server, other.headers):
                for peer, key in zip(hostile, keys * 8, strict=True):
                    peer.socket.settimeout(0.5)
                    peer.send(post_head("/documents", 10 * MIB, f"x-api-key: {key.secret}") + body)
                assert resident_mib(server) - before_mib < 90
                given = {"path": "mine", "content": "y" * 2_000_000}
                # Sooner than any of those gives up.
                made = server.client.post("/documents", json=given, timeout=BODY_WAIT_SECONDS_MAX)
                assert made.status_code == 201

    @pytest.mark.parametrize("bound", ["BYTES_IN_FLIGHT_PER_KEY_MAX", "BYTES_IN_FLIGHT_MAX"])
    def test_unread_answers_take_bounded_memory(self, tmp_path: Path, bound: str) -> None:
        """Those of one key, or those of five keys that each take little."""
        data = tmp_path / "data"
        keys = [create_key(data) for _ in range(1 if "KEY" in bound else 5)]
        with Server(data, environment={f"ZIBALDONE_{bound}": str(40 * MIB)}) as server:
            server.client.headers.update(keys[0].headers)
            server.create("large", "0123456789abcde\n" * (6 * MIB // 16))
            ask = [
                raw_request(b"/documents/large", f"x-api-key: {key.secret}".encode())
                for key in keys
            ]
            with Bystander(server, keys[0].headers), peers(server, 50, small=True) as hostile:
                for peer in hostile[:4]:
                    peer.send(ask[0])
                    time.sleep(0.2)
                before_mib = resident_mib(server)
                for number, peer in enumerate(hostile[4:]):
                    peer.send(ask[number % len(ask)])
                    time.sleep(0.1)
                time.sleep(0.5)
                # Kept, they would take 46 times 6 MiB.
                assert resident_mib(server) - before_mib < 200


class TestConnections:
    @pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs limits set from outside")
    def test_idle_ones_make_room(self, tmp_path: Path) -> None:
        """As many as the system allows: the server must not run out before it closes some."""
        with Server(tmp_path / "data", environment={"ZIBALDONE_CONNECTIONS_MAX": "64"}) as server:
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (200, 200))
            with peers(server, 300), Bystander(server):
                time.sleep(1)
                assert server.client.get("/live").status_code == 200

    @pytest.mark.parametrize("http", ["httptools", "h11"])
    def test_strangers_make_room_before_those_who_are_known(
        self, tmp_path: Path, http: str
    ) -> None:
        environment = {"ZIBALDONE_CONNECTIONS_MAX": "200", "HOSTILE_HTTP": http}
        get = b"GET /documents?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with FaultyServer(tmp_path / "data", environment=environment) as server, Peer(server) as us:
            for known in (get, b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n"):
                us.send(known)
                assert us.answer().status == 200
            # More than twice as many as there may be: nobody of those who came first is left.
            with peers(server, 450) as others:
                assert others[0].is_closed(5)
                us.send(get)
                assert us.answer().status == 200

    @pytest.mark.parametrize("http", ["httptools", "h11"])
    def test_answers_to_strangers_that_are_not_read(self, tmp_path: Path, http: str) -> None:
        environment = {"ZIBALDONE_CONNECTIONS_MAX": "8", "HOSTILE_HTTP": http}
        key = create_key(tmp_path / "data")
        ask = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with (
            FaultyServer(tmp_path / "data", environment=environment) as server,
            peers(server, 8, small=True) as strangers,
        ):
            for stranger in strangers:
                stranger.send(ask * 60)
                assert stranger.socket.recv(1)
            with Bystander(server, key.headers):
                pass

    def test_the_default_is_below_what_the_system_allows(self, tmp_path: Path) -> None:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        try:
            server = Server(tmp_path / "data").start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        with server.client, peers(server, 1200), Bystander(server):
            time.sleep(1)
        server.stop()

    def test_an_address_takes_its_share_and_no_more(self, tmp_path: Path) -> None:
        environment = {
            "ZIBALDONE_CONNECTIONS_MAX": "20",
            "ZIBALDONE_CONNECTIONS_PER_ADDRESS_MAX": "10",
        }
        with Server(tmp_path / "data", environment=environment) as server, Peer(server) as mine:
            mine.send(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert mine.answer().status == 200
            with peers(server, 40, source="127.0.0.2") as others:
                assert others[0].is_closed(2), "the oldest of that address"
                assert not others[-1].is_closed(0.2)
                mine.send(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert mine.answer().status == 200

    def test_where_all_are_busy_a_new_one_is_refused(self, tmp_path: Path) -> None:
        environment = {"ZIBALDONE_CONNECTIONS_MAX": "3"}
        with FaultyServer(tmp_path / "data", environment=environment) as server:
            with peers(server, 3) as busy:
                for peer in busy:
                    peer.send(raw_request(b"/hang/stream"))
                    assert peer.socket.recv(1)
                with Peer(server) as late:
                    late.answer().refused(503, "TOO_MANY_CONNECTIONS")
            server.kill()

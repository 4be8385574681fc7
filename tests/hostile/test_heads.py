"""Before anybody is authenticated: URLs, headers, trailers, upgrades, requests sent ahead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.mcp import BOTH, JSON, SSE, Mcp
from tests.drivers.raw import exchange, raw_request
from tests.drivers.server import Server
from tests.hostile.faulty import FaultyServer
from tests.hostile.peers import Bystander, Peer, call, peers, resident_mib
from zibaldone.access import loopback
from zibaldone.protocol import negotiate

MIB = 1 << 20
SENT_MIB_MAX = 64
GROWTH_MIB_MAX = 24


@pytest.fixture(scope="module", params=["httptools", "h11"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyServer]:
    """Both protocols: the second serves where the first is not installed."""
    data = tmp_path_factory.mktemp("heads") / "data"
    with FaultyServer(data, environment={"HOSTILE_HTTP": request.param}) as running:
        running.create("bystander", "x")
        yield running


def flood(server: Server, opening: bytes, endless: bytes) -> tuple[int, bytes, float]:
    """Send without end; the status, the body, and how much memory that took."""
    before_mib = resident_mib(server)
    with Bystander(server), Peer(server) as peer:
        peer.send(opening)
        for _ in range(SENT_MIB_MAX):
            if not peer.send(endless * (MIB // len(endless))):
                break
        answer = peer.answer()
        growth_mib = resident_mib(server) - before_mib
    return answer.status, answer.body, growth_mib


class TestEndless:
    @pytest.mark.parametrize(
        ("opening", "endless", "status", "code"),
        [
            (b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: ", b"a", 431, "HEADERS_TOO_LARGE"),
            (b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a", b"a", 431, "HEADERS_TOO_LARGE"),
            (b"GET /health HTTP/1.1\r\n", b"x-a: bcdefgh\r\n", 431, "HEADERS_TOO_LARGE"),
            (b"GET /health?q=", b"a", 414, "URL_TOO_LONG"),
        ],
        ids=["value", "name", "fields", "url"],
    )
    def test_a_head(
        self, server: FaultyServer, opening: bytes, endless: bytes, status: int, code: str
    ) -> None:
        given, body, growth_mib = flood(server, opening, endless)
        assert growth_mib < GROWTH_MIB_MAX
        if server.protocol == "h11" and status == 414:
            status, code = 431, "HEADERS_TOO_LARGE"  # h11 does not say what was too long
        assert given == status, body
        assert json.loads(body)["code"] == code

    @pytest.mark.parametrize("endless", [b"a", b"x-a: bcdefgh\r\n"], ids=["value", "fields"])
    def test_trailers(self, server: Server, endless: bytes) -> None:
        opening = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        status, _, growth_mib = flood(server, opening + b"2\r\n{}\r\n0\r\nx-t: ", endless)
        assert growth_mib < GROWTH_MIB_MAX
        assert status == 431


class TestBounds:
    def test_too_many_headers(self, server: Server) -> None:
        headers = [b"x-%d: y" % number for number in range(100)]
        exchange(server, raw_request(b"/health", *headers)).refused(431, "HEADERS_TOO_LARGE")
        assert exchange(server, raw_request(b"/health", *headers[:90])).status == 200

    def test_a_long_header_in_one_piece(self, server: Server) -> None:
        request = raw_request(b"/health", b"x-a: " + b"y" * 70_000)
        exchange(server, request).refused(431, "HEADERS_TOO_LARGE")
        assert exchange(server, raw_request(b"/health", b"x-a: " + b"y" * 20_000)).status == 200

    def test_a_long_url(self, server: Server) -> None:
        exchange(server, raw_request(b"/health?" + b"q" * 40_000)).refused(414, "URL_TOO_LONG")
        assert exchange(server, raw_request(b"/health?" + b"q" * 20_000)).status == 200

    def test_two_hosts(self, server: Server) -> None:
        for second in (b"Host: localhost", b"host: evil.example"):
            answer = exchange(server, raw_request(b"/health", second))
            answer.refused(400, "BAD_REQUEST")

    def test_a_long_accept_header_is_not_remembered(self) -> None:
        before = negotiate._parse_cached.cache_info()
        for number in range(3):
            accept = f"application/json, x/y;a={number:01000}"
            assert negotiate.parse_accept(accept).wants_json
        assert negotiate._parse_cached.cache_info().currsize == before.currsize

    def test_a_long_host_is_not_remembered(self) -> None:
        before = loopback._is_loopback.cache_info()
        for number in range(3):
            assert not loopback.is_loopback(f"{number:01000}.example")
        assert loopback._is_loopback.cache_info().currsize == before.currsize

    def test_a_length_of_many_digits(self, server: Server) -> None:
        """Parsers of HTTP know what thousands of zeros mean; Python's `int` refuses them."""
        length = b"Content-Length: " + b"0" * 5_000 + b"2"
        request = raw_request(b"/search", length, method=b"POST") + b"{}"
        exchange(server, request).refused(400, "BAD_REQUEST")

    def test_a_trailer_is_no_header(self, server: Server) -> None:
        """It comes after everything was decided: it must not decide anything."""
        body = call("list_documents", {})
        request = (
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n%x\r\n%s\r\n0\r\naccept: application/xml\r\n\r\n"
        )
        assert exchange(server, request % (len(body), body)).status == 200


class TestUpgrade:
    """A client may offer to switch; who does not, answers the request as it is (RFC 9110, 7.8)."""

    UPGRADE = (
        b"connection: Upgrade, HTTP2-Settings",
        b"upgrade: h2c",
        b"http2-settings: AAMAAABkAAQAAP__",
    )

    @pytest.mark.parametrize("accept", [JSON, SSE])
    @pytest.mark.parametrize("at", [None, 0, 10])
    def test_the_body_is_kept(self, server: Server, accept: str, at: int | None) -> None:
        body = call("list_documents", {"limit": 1})
        lines = (
            b"POST /mcp HTTP/1.1",
            b"host: localhost",
            b"accept: " + accept.encode(),
            b"content-length: %d" % len(body),
            *self.UPGRADE,
        )
        head = b"\r\n".join((*lines, b"", b""))
        with Peer(server) as peer:
            parts = [head + body] if at is None else [head + body[:at], body[at:]]
            for part in parts:
                peer.send(part)
            answer = peer.answer()
            assert answer.status == 200, answer.body
            assert b"bystander" in answer.body
            peer.send(raw_request(b"/live"))
            assert peer.answer().status == 200, "and the connection goes on"

    def test_a_chunked_body_too(self, server: Server) -> None:
        body = call("list_documents", {"limit": 1})
        lines = (
            b"POST /mcp HTTP/1.1",
            b"host: localhost",
            b"transfer-encoding: chunked",
            *self.UPGRADE,
        )
        head = b"\r\n".join((*lines, b"", b""))
        with Peer(server) as peer:
            peer.send(head)
            peer.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            assert b"bystander" in peer.answer().body

    def test_connect_is_refused(self, server: Server) -> None:
        with Peer(server) as peer:
            peer.send(b"CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n")
            assert peer.answer().status in (400, 404, 421)


class TestNotifications:
    @pytest.mark.parametrize("accept", ["application/xml", f"{JSON};q=0", JSON, SSE, BOTH])
    @pytest.mark.parametrize(("version", "status"), [(None, 204), ("2025-11-25", 202)])
    def test_are_taken_whatever_accept_says(
        self, server: Server, accept: str, version: str | None, status: int
    ) -> None:
        headers = {} if version is None else {"mcp_protocol_version": version}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = Mcp(server.client).post(note, accept=accept, **headers)
        assert (answer.status_code, answer.content) == (status, b"")

    def test_requests_are_still_406(self, server: Server) -> None:
        answer = Mcp(server.client).post(call("list_documents", {}), accept="application/xml")
        assert answer.status_code == 406


def test_many_requests_sent_ahead(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        server.create("bystander", "x")
        before_mib = resident_mib(server)
        one = b"GET /documents?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with Bystander(server), peers(server, 20) as hostile:
            for peer in hostile:
                peer.send(one * 10_000)
            assert all(peer.is_closed(10) for peer in hostile)
            assert resident_mib(server) - before_mib < 60

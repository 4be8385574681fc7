"""What the network sees: where the server may listen, for whom, how much and how many at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.keys import create_key
from tests.drivers.mcp import JSON_TYPE, PATHS, SSE, Mcp
from tests.drivers.server import Server, free_port, run_cli
from tests.drivers.slow_host import WAIT_SECONDS_MAX, SlowHost

LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
PAGE = "https://app.example.org"
BODY_BYTES_MAX = 20_000


class TestWhereItListens:
    @pytest.mark.parametrize("host", ["0.0.0.0", "kb.example.org"])
    def test_a_public_address_is_refused_without_a_key(self, data: Path, host: str) -> None:
        result = run_cli("serve", "--host", host, "--port", str(free_port()), data=data)
        assert result.returncode == 2
        assert host in result.stderr
        assert "zibaldone key create" in result.stderr
        assert "127.0.0.1" in result.stderr
        assert "Traceback" not in result.stderr

    def test_nor_with_one_that_has_ended(self, data: Path) -> None:
        create_key(data, "--expires", "2020-01-01T00:00:00Z")
        result = run_cli("serve", "--host", "0.0.0.0", "--port", str(free_port()), data=data)
        assert result.returncode == 2

    def test_with_a_valid_key_it_is_served_and_closed(self, data: Path) -> None:
        key = create_key(data)
        with Server(data, arguments=["--host", "0.0.0.0"]) as server:
            assert Mcp(server.client).post(LIST).status_code == 401
            assert len(Mcp(server.client, headers=key.headers).tools()) == 10


@pytest.fixture(scope="module")
def open_to_a_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {
        "ZIBALDONE_ALLOWED_HOSTS": "kb.example.org",
        "ZIBALDONE_ALLOWED_ORIGINS": PAGE,
        "ZIBALDONE_PUBLIC_FULL_PROFILE": "true",
        "ZIBALDONE_REQUEST_BODY_BYTES_MAX": str(BODY_BYTES_MAX),
    }
    data = tmp_path_factory.mktemp("exposure") / "data"
    with Server(data, environment=environment) as server:
        yield server


class TestHostAndOrigin:
    @pytest.mark.parametrize("path", PATHS)
    def test_another_host_is_misdirected(self, shared_server: Server, path: str) -> None:
        for host in ("evil.example.org", "evil.example.org:8321", "127.0.0.1.evil.org", ""):
            answer = Mcp(shared_server.client, path).post(LIST, host=host)
            assert answer.status_code == 421, host
            assert answer.headers["content-type"] == JSON_TYPE

    @pytest.mark.parametrize("path", PATHS)
    def test_another_origin_is_forbidden(self, shared_server: Server, path: str) -> None:
        for origin in (PAGE, "null", "http://localhost.evil.org", "https://evil.org", "file://"):
            answer = Mcp(shared_server.client, path).post(LIST, origin=origin)
            assert answer.status_code == 403, origin
            assert answer.headers["content-type"] == JSON_TYPE

    def test_pages_on_this_machine_may_call(self, shared_server: Server) -> None:
        for origin in ("http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"):
            assert Mcp(shared_server.client).post(LIST, origin=origin).status_code == 200

    def test_names_that_are_set_are_ours(self, open_to_a_page: Server) -> None:
        mcp = Mcp(open_to_a_page.client)
        assert mcp.post(LIST, host="kb.example.org").status_code == 200
        assert mcp.post(LIST, host="KB.example.org:8321").status_code == 200
        assert mcp.post(LIST, host="other.example.org").status_code == 421


class TestCors:
    def test_is_off_unless_set(self, shared_server: Server) -> None:
        answer = Mcp(shared_server.client).post(LIST, origin="http://localhost:3000")
        preflight = shared_server.client.options(
            "/mcp",
            headers={
                "origin": "http://localhost:3000",
                "access-control-request-method": "POST",
            },
        )
        assert preflight.status_code == 405
        for headers in (answer.headers, preflight.headers):
            assert not [name for name in headers if name.startswith("access-control-")]

    @pytest.mark.parametrize("path", [*PATHS, "/documents", "/documents/a/b"])
    def test_a_page_that_is_set_may_ask_first(self, open_to_a_page: Server, path: str) -> None:
        answer = open_to_a_page.client.options(
            path,
            headers={
                "origin": PAGE,
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type, mcp-protocol-version",
            },
        )
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "POST" in answer.headers["access-control-allow-methods"]
        allowed = answer.headers["access-control-allow-headers"]
        for name in ("authorization", "mcp-protocol-version", "mcp-method", "mcp-name"):
            assert name in allowed

    def test_its_answers_say_so_too_failures_included(self, open_to_a_page: Server) -> None:
        mcp = Mcp(open_to_a_page.client, headers={"origin": PAGE})
        for answer in (mcp.post(LIST), mcp.post(LIST, accept=SSE), mcp.post(b"{", accept="a/b")):
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
            assert "origin" in answer.headers["vary"]

    def test_other_pages_are_still_forbidden(self, open_to_a_page: Server) -> None:
        for origin in ("https://app.example.org.evil.org", "http://app.example.org", "null"):
            answer = Mcp(open_to_a_page.client).post(LIST, origin=origin)
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers


class TestBodyLimit:
    ROUTES = (*PATHS, "/mcp-all", "/gpt-mcp/token/mcp", "/documents", "/search", "/batch-read")

    @pytest.mark.parametrize("path", [*ROUTES, "/documents/a", "/ingest", "/health", "/nowhere"])
    def test_on_every_route(self, open_to_a_page: Server, path: str) -> None:
        body = b'{"text":"' + b"x" * BODY_BYTES_MAX + b'"}'
        answer = open_to_a_page.client.post(path, content=body)
        assert answer.status_code == 413
        assert answer.json()["details"]["bytes_max"] == BODY_BYTES_MAX

    @pytest.mark.parametrize("path", PATHS)
    def test_also_when_the_length_is_not_said(self, open_to_a_page: Server, path: str) -> None:
        answer = open_to_a_page.client.post(path, content=iter([b" " * 1_000] * 30))
        assert answer.status_code == 413
        assert answer.headers["content-type"] == JSON_TYPE

    def test_what_fits_is_served(self, open_to_a_page: Server) -> None:
        body = LIST + b" " * (BODY_BYTES_MAX - len(LIST))
        assert Mcp(open_to_a_page.client).post(body).status_code == 200


@pytest.mark.requirement("7.5.b", "X-20")
class TestTheFullProfile:
    FORWARDED = (
        {"x-forwarded-for": "203.0.113.7"},
        {"forwarded": "for=203.0.113.7"},
        {"x-real-ip": "203.0.113.7"},
    )

    @pytest.mark.parametrize("headers", FORWARDED)
    def test_is_not_there_for_callers_from_elsewhere(
        self, shared_server: Server, headers: dict[str, str]
    ) -> None:
        for slash in ("", "/"):
            full = Mcp(shared_server.client, "/mcp-gpt-full" + slash, headers=headers)
            assert full.post(LIST).status_code == 404
            assert shared_server.client.get(full.path, headers=headers).status_code == 404
        for path in ("/mcp", "/mcp-gpt", "/mcp-readonly"):
            assert Mcp(shared_server.client, path, headers=headers).post(LIST).status_code == 200

    def test_is_there_for_those_on_this_machine(self, shared_server: Server) -> None:
        assert len(Mcp(shared_server.client, "/mcp-gpt-full").tools()) == 10

    @pytest.mark.parametrize("headers", FORWARDED)
    def test_a_deliberate_setting_opens_it(
        self, open_to_a_page: Server, headers: dict[str, str]
    ) -> None:
        full = Mcp(open_to_a_page.client, "/mcp-gpt-full", headers=headers)
        assert len(full.tools()) == 10


class TestHowManyAtOnce:
    def ingest(self, host: SlowHost) -> dict[str, Any]:
        arguments = {"source": host.url, "path": "busy/a"}
        params = {"name": "ingest_document", "arguments": arguments}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    @pytest.fixture
    def host(self) -> Iterator[SlowHost]:
        with SlowHost() as running:
            yield running

    @pytest.mark.parametrize("setting", ["REQUESTS_PER_KEY_MAX", "REQUESTS_MAX"])
    def test_one_too_many_is_told_to_come_back_and_others_are_served(
        self, data: Path, host: SlowHost, setting: str
    ) -> None:
        key, other = create_key(data), create_key(data)
        environment = {
            f"ZIBALDONE_{setting}": "1",
            "ZIBALDONE_INGEST_HOSTS": f"127.0.0.1:{host.port}",
            "NO_PROXY": "*",
        }
        with Server(data, environment=environment) as server:
            mcp = Mcp(server.client, headers=key.headers)
            answers: list[httpx.Response] = []
            busy = threading.Thread(
                target=lambda: answers.append(
                    Mcp(server.client, headers=key.headers).post(self.ingest(host))
                )
            )
            busy.start()
            assert host.asked.wait(WAIT_SECONDS_MAX)
            for refused in (
                mcp.post(LIST, accept=SSE),
                server.client.get("/documents", headers=key.headers),
            ):
                assert refused.status_code == 429
                assert refused.headers["retry-after"] == "1"
                assert refused.headers["content-type"] == JSON_TYPE
                assert refused.json()["code"] == "TOO_MANY_REQUESTS"
            beside = Mcp(server.client, headers=other.headers).post(LIST)
            assert beside.status_code == 200
            host.release.set()
            busy.join(WAIT_SECONDS_MAX)
            assert json.loads(answers[0].content)["result"]["isError"] is False
            assert mcp.post(LIST).status_code == 200

"""The issuer's keys: found, kept, changed, missing; and what is asked of its settings at start."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.drivers.authorization_server import AuthorizationServer, new_key
from tests.drivers.in_process import application
from tests.drivers.keys import create_key
from tests.drivers.raw import raw_request
from tests.drivers.server import run_cli
from tests.drivers.tokens import bearer, forged, invalid, server_of
from tests.drivers.urls import refusal
from tests.hostile.peers import Peer
from zibaldone.errors import ConfigurationError


def test_a_new_key_is_found_and_a_withdrawn_one_ends(tmp_path: Path) -> None:
    with (
        AuthorizationServer() as rotating,
        server_of(rotating.issuer, tmp_path, issuer_retry_seconds_min=0.001) as server,
    ):
        first = rotating.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(first)).status_code == 200
        rotating.rotate()
        second = rotating.token(resource=server.url)
        for token in (second, first):
            assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        rotating.rotate(withdraw=True)
        third = rotating.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(third)).status_code == 200
        for token in (first, second):
            assert "key" in invalid(server.client.get("/documents", headers=bearer(token)))


def test_unknown_keys_do_not_make_us_ask_again_and_again(tmp_path: Path) -> None:
    with (
        AuthorizationServer() as quiet,
        server_of(quiet.issuer, tmp_path, issuer_retry_seconds_min=3600) as server,
    ):
        token = quiet.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        for _ in range(20):
            stranger = forged(server, new_key("ES256"), "ES256", iss=quiet.issuer)
            assert "key" in invalid(server.client.get("/documents", headers=bearer(stranger)))
        assert quiet.answered["jwks"] == 1


def test_keys_are_read_again_in_the_background(tmp_path: Path) -> None:
    with (
        AuthorizationServer() as renewing,
        server_of(
            renewing.issuer,
            tmp_path,
            issuer_retry_seconds_min=0.001,
            issuer_keys_fresh_seconds=0.001,
        ) as server,
    ):
        token = renewing.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        for _ in range(1000):
            answer = server.client.get("/documents", headers=bearer(token))
            assert answer.status_code == 200
            if renewing.answered["jwks"] > 1:
                return
        pytest.fail("the keys were never read again")


def test_strangers_who_wait_for_an_issuer_keep_nobody_out(tmp_path: Path) -> None:
    key = create_key(tmp_path / "data")
    with (
        socket.create_server(("127.0.0.1", 0), backlog=8) as silent,
        server_of(f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path, connections_max=4) as us,
        contextlib.ExitStack() as stack,
    ):
        token = forged(us, new_key("ES256"), "ES256")
        ask = raw_request(b"/documents", f"authorization: Bearer {token}".encode())
        for _ in range(4):
            stranger = stack.enter_context(Peer(us))
            stranger.send(ask)
        stack.enter_context(silent.accept()[0])
        for _ in range(3):
            assert us.client.get("/documents", headers=key.headers).status_code == 200


def test_an_issuer_that_is_down(tmp_path: Path) -> None:
    down = AuthorizationServer()
    down.stop()
    with server_of(down.issuer, tmp_path, issuer_retry_seconds_min=0.001) as server:
        token = forged(server, down.keys[-1], iss=down.issuer)
        for path in ("/documents", "/mcp"):
            answer = server.client.post(path, json={}, headers=bearer(token))
            refusal(answer, 503, "ISSUER_UNAVAILABLE")
            assert int(answer.headers["Retry-After"]) >= 1
        invalid(server.client.get("/documents", headers=bearer("not-a-token")))
        assert server.client.get("/health").status_code == 200
        assert "cannot read the keys of" in server.log()
        assert token not in server.log()
        with AuthorizationServer(port=down.port) as up:
            token = up.token(resource=server.url)
            assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        # Known keys outlive their issuer for a while; a key it may have had since cannot be told.
        assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        stranger = forged(server, new_key("ES256"), "ES256", iss=down.issuer)
        answer = server.client.get("/documents", headers=bearer(stranger))
        refusal(answer, 503, "ISSUER_UNAVAILABLE")


def test_keys_do_not_outlive_their_issuer_for_ever(tmp_path: Path) -> None:
    with AuthorizationServer() as mortal:
        bounds = {"issuer_retry_seconds_min": 0.001, "issuer_keys_stale_seconds_max": 0.5}
        with server_of(mortal.issuer, tmp_path, **bounds) as server:
            token = mortal.token(resource=server.url)
            assert server.client.get("/documents", headers=bearer(token)).status_code == 200
            mortal.stop()
            for _ in range(1000):
                answer = server.client.get("/documents", headers=bearer(token))
                if answer.status_code != 200:
                    break
                time.sleep(0.01)
            refusal(answer, 503, "ISSUER_UNAVAILABLE")


def test_a_slow_issuer_holds_up_nobody_else(tmp_path: Path) -> None:
    with (
        AuthorizationServer() as slow,
        server_of(slow.issuer, tmp_path, issuer_answer_seconds_max=60) as server,
    ):
        token = slow.token(resource=server.url)
        slow.may_answer.clear()
        statuses: list[int] = []

        def ask() -> None:
            answer = httpx.get(
                f"{server.url}/documents", headers=bearer(token), timeout=30, trust_env=False
            )
            statuses.append(answer.status_code)

        waiting = [threading.Thread(target=ask) for _ in range(3)]
        for thread in waiting:
            thread.start()
        assert slow.was_asked.wait(timeout=30)
        for _ in range(20):
            assert server.client.get("/health").status_code == 200
        assert statuses == []
        slow.may_answer.set()
        for thread in waiting:
            thread.join()
        assert statuses == [200, 200, 200]
        assert slow.answered == {"metadata": 1, "jwks": 1}


def test_an_issuer_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with AuthorizationServer() as silent:
        silent.may_answer.clear()
        with server_of(silent.issuer, tmp_path, issuer_answer_seconds_max=0.05) as server:
            token = silent.token(resource=server.url)
            answer = server.client.get("/documents", headers=bearer(token))
            refusal(answer, 503, "ISSUER_UNAVAILABLE")


def test_packed_keys_are_not_unpacked(tmp_path: Path) -> None:
    with AuthorizationServer() as packing, server_of(packing.issuer, tmp_path) as server:
        packing.packs_keys = True
        token = packing.token(resource=server.url)
        refusal(server.client.get("/documents", headers=bearer(token)), 503, "ISSUER_UNAVAILABLE")
        assert "is not JSON" in server.log()


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("oauth-authorization-server", "RS256"), ("openid-configuration", "ES256")],
)
def test_an_issuer_with_a_path(tmp_path: Path, name: str, algorithm: str) -> None:
    with (
        AuthorizationServer(path="/realms/kb", metadata_name=name, algorithm=algorithm) as realm,
        server_of(realm.issuer, tmp_path) as server,
    ):
        token = realm.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(token)).status_code == 200


def test_metadata_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    with AuthorizationServer() as odd:
        odd.claimed_issuer = "https://other.example.org"
        with server_of(odd.issuer, tmp_path) as server:
            token = odd.token(resource=server.url)
            answer = server.client.get("/documents", headers=bearer(token))
            refusal(answer, 503, "ISSUER_UNAVAILABLE")
            assert "https://other.example.org" in server.log()
            assert "set oauth_issuer to exactly that" in server.log()


@pytest.mark.parametrize(
    ("issuer", "public_url", "said"),
    [
        ("https://id.example.org", "", "public_url"),
        ("https://id.example.org", "kb.example.org", "public_url"),
        ("https://id.example.org", "https://kb.example.org?x=1", "public_url"),
        ("http://id.example.org", "https://kb.example.org", "https://"),
        ("id.example.org", "https://kb.example.org", "oauth_issuer"),
        ("https://id.example.org?x", "https://kb.example.org", "oauth_issuer"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, issuer: str, public_url: str, said: str
) -> None:
    with (
        pytest.raises(ConfigurationError, match=said),
        application(tmp_path, oauth_issuer=issuer, public_url=public_url),
    ):
        pass


@pytest.mark.parametrize("library", ["jwt", "httpx2", "cryptography"])
def test_the_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with application(tmp_path):
        pass  # nothing is missing as long as no issuer is set
    with (
        pytest.raises(ConfigurationError, match=r"zibaldone\[oauth\]"),
        application(
            tmp_path, oauth_issuer="https://id.example.org", public_url="https://kb.example.org"
        ),
    ):
        pass


def test_the_process_does_not_start_with_them(tmp_path: Path) -> None:
    environment = {"ZIBALDONE_OAUTH_ISSUER": "https://id.example.org"}
    result = run_cli("serve", "--port", "0", data=tmp_path / "data", environment=environment)
    assert result.returncode != 0
    assert "public_url" in result.stderr

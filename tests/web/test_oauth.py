"""Access tokens of a real authorization server are accepted; whatever is not one is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt

from tests.drivers.authorization_server import AuthorizationServer, new_key
from tests.drivers.keys import create_key
from tests.drivers.server import Server
from tests.drivers.tokens import (
    ALL_SCOPES,
    WELL_KNOWN,
    bearer,
    call,
    challenge_of,
    forged,
    invalid,
    server_of,
)
from tests.drivers.urls import at, refusal
from zibaldone.limits import TOKEN_LEEWAY_SECONDS


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as running:
        yield running


@pytest.fixture(scope="module")
def trusting(
    issuer: AuthorizationServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One server for the tests of tokens; keys are read again at once when one is missing."""
    folder = tmp_path_factory.mktemp("oauth")
    with server_of(issuer.issuer, folder, issuer_retry_seconds_min=0.001) as running:
        yield running


# What clients find out by themselves


PROFILE_PATHS = ("/mcp", "/mcp-readonly", "/mcp-gpt", "/mcp-gpt-full", "/mcp-all")


@pytest.mark.parametrize("path", ["", *PROFILE_PATHS])
def test_the_metadata_is_open_and_names_the_resource(
    trusting: Server, issuer: AuthorizationServer, path: str
) -> None:
    answer = trusting.client.get(WELL_KNOWN + path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    metadata = answer.json()
    assert metadata["resource"] == trusting.url + path
    assert metadata["authorization_servers"] == [issuer.issuer]
    assert metadata["bearer_methods_supported"] == ["header"]
    assert metadata["resource_name"].startswith("Zibaldone")
    scopes = ["zibaldone:read"] if path == "/mcp-readonly" else metadata["scopes_supported"]
    assert metadata["scopes_supported"] == scopes
    assert "zibaldone:admin" not in scopes


def test_the_metadata_is_only_read(trusting: Server) -> None:
    refusal(trusting.client.post(WELL_KNOWN), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("path", "resource", "scopes"),
    [
        ("/mcp", "/mcp", ALL_SCOPES),
        ("/mcp/", "/mcp", ALL_SCOPES),
        ("/mcp-gpt", "/mcp-gpt", "zibaldone:read zibaldone:write"),
        ("/mcp-readonly", "/mcp-readonly", "zibaldone:read"),
        ("/documents", "", ALL_SCOPES),
    ],
)
def test_a_caller_without_a_token_is_told_where_to_look(
    trusting: Server, path: str, resource: str, scopes: str
) -> None:
    answer = trusting.client.post(path, json={})
    refusal(answer, 401, "UNAUTHENTICATED")
    challenge = challenge_of(answer)
    assert challenge == {
        "resource_metadata": trusting.url + WELL_KNOWN + resource,
        "scope": scopes,
    }
    metadata = trusting.client.get(challenge["resource_metadata"]).json()
    assert metadata["resource"] == trusting.url + resource


def test_a_path_of_the_public_address_goes_behind_the_well_known_part(
    issuer: AuthorizationServer, tmp_path: Path
) -> None:
    with server_of(issuer.issuer, tmp_path, public_url="https://kb.example.org/team/") as server:
        challenge = challenge_of(server.client.post("/mcp", json={}))
        where = f"https://kb.example.org{WELL_KNOWN}/team/mcp"
        assert challenge["resource_metadata"] == where
        proxied = server.client.get(f"{WELL_KNOWN}/team/mcp", headers={"Host": "kb.example.org"})
        assert proxied.json()["resource"] == "https://kb.example.org/team/mcp"
        assert proxied.json() == server.client.get(f"{WELL_KNOWN}/mcp").json()


# Tokens that are good


def test_a_token_works_over_rest_and_mcp(trusting: Server, issuer: AuthorizationServer) -> None:
    token = issuer.token(resource=trusting.url)
    created = trusting.client.post(
        "/documents", json={"path": "oauth/a", "content": "by token"}, headers=bearer(token)
    )
    assert created.status_code == 201, created.text
    answer = call(trusting, token, "get_document", {"path": "oauth/a"})
    assert "by token" in answer.json()["result"]["content"][0]["text"]
    deleted = call(trusting, token, "delete_document", {"path": "oauth/a"})
    assert deleted.json()["result"]["isError"] is False


def test_changes_are_in_the_audit_trail_under_the_subject(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    def hashed(subject: str) -> str:
        return f"sha256-{hashlib.sha256(subject.encode()).hexdigest()[:32]}"

    odd = 'Robert"; \n drop\u00e9'
    posing = hashed(odd)
    for subject, shown in (
        ("auth0|5f7c", "oauth:auth0|5f7c"),
        (odd, f"oauth:{hashed(odd)}"),
        (posing, f"oauth:{hashed(posing)}"),
    ):
        token = issuer.token(resource=trusting.url, claims={"sub": subject})
        path = f"audited/{secrets.token_hex(4)}"
        answer = call(trusting, token, "upload_document", {"path": path, "content": "x"})
        assert answer.json()["result"]["isError"] is False
        lines = [json.loads(line) for line in trusting.log().splitlines() if path in line]
        assert [json.loads(line["message"])["key"] for line in lines] == [shown]


def test_api_keys_work_beside_tokens(issuer: AuthorizationServer, tmp_path: Path) -> None:
    server = server_of(issuer.issuer, tmp_path)
    key = create_key(server.data)
    with server:
        refusal(server.client.get("/documents"), 401, "UNAUTHENTICATED")
        assert server.client.get("/documents", headers=key.headers).status_code == 200
        assert server.client.get("/documents", headers=bearer(key.secret)).status_code == 200
        token = issuer.token(resource=server.url)
        assert server.client.get("/documents", headers=bearer(token)).status_code == 200
        unknown = server.client.get("/documents", headers={"x-api-key": "cp_unknown"})
        assert "neither" in invalid(unknown)


def test_a_token_for_one_profile_is_good_there_alone(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    token = issuer.token(resource=f"{trusting.url}/mcp-gpt")
    assert "result" in call(trusting, token, "list_documents", {}, "/mcp-gpt").json()
    for path in ("/mcp", "/mcp-readonly"):
        refused = call(trusting, token, "list_documents", {}, path)
        refusal(refused, 401, "UNAUTHENTICATED")
        challenge = challenge_of(refused)
        assert challenge["error"] == "invalid_token"
        assert challenge["resource_metadata"] == trusting.url + WELL_KNOWN + path
    assert "audience" in invalid(trusting.client.get("/documents", headers=bearer(token)))


def test_an_audience_of_the_issuers_own(issuer: AuthorizationServer, tmp_path: Path) -> None:
    with server_of(issuer.issuer, tmp_path, oauth_audience="api://knowledge") as server:
        good = issuer.token(resource="api://knowledge")
        assert server.client.get("/documents", headers=bearer(good)).status_code == 200
        assert "result" in call(server, good, "list_documents", {}).json()
        other = issuer.token(resource=server.url)
        assert "audience" in invalid(server.client.get("/documents", headers=bearer(other)))


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": ["openid", "zibaldone:read"]},
        {"scope": "openid zibaldone:read"},
        {"scope": None, "scp": ["zibaldone:read"]},
        {"scope": None, "scp": "zibaldone:read"},
    ],
)
def test_scopes_come_as_a_text_or_a_list(
    trusting: Server, issuer: AuthorizationServer, claims: dict[str, Any]
) -> None:
    token = forged(trusting, issuer.keys[-1], iss=issuer.issuer, **claims)
    assert trusting.client.get("/documents", headers=bearer(token)).status_code == 200


def test_namespace_and_prefix_come_from_claims(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    there = {"zibaldone_namespace": "team-b", "zibaldone_prefix": "notes/"}
    inside = issuer.token(resource=trusting.url, claims=there)
    beside = issuer.token(resource=trusting.url, claims={"zibaldone_namespace": "team-b"})
    elsewhere = issuer.token(resource=trusting.url)
    body = {"path": "notes/tenant", "content": "x"}
    made = trusting.client.post("/documents", json=body, headers=bearer(inside))
    assert made.status_code == 201
    outside = trusting.client.post(
        "/documents", json={"path": "other", "content": "x"}, headers=bearer(inside)
    )
    refusal(outside, 403, "FORBIDDEN")
    for token, status in ((inside, 200), (beside, 200), (elsewhere, 404)):
        answer = trusting.client.get(at("notes/tenant"), headers=bearer(token))
        assert answer.status_code == status


@pytest.mark.parametrize(
    "claims",
    [
        {"zibaldone_namespace": "../default"},
        {"zibaldone_namespace": ""},
        {"zibaldone_namespace": 7},
        {"zibaldone_namespace": None},
        {"zibaldone_prefix": ["notes/"]},
        {"zibaldone_prefix": "notes\n"},
    ],
)
def test_a_claim_that_cannot_be_understood_opens_nothing(
    trusting: Server, issuer: AuthorizationServer, claims: dict[str, Any]
) -> None:
    token = issuer.token(resource=trusting.url, claims=claims)
    assert "claim" in invalid(trusting.client.get("/documents", headers=bearer(token)))


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # and what most issuers still write
@pytest.mark.parametrize("algorithm", ["PS256", "RS512", "ES256", "ES384", "ES512", "EdDSA"])
def test_every_asymmetric_algorithm(
    trusting: Server, issuer: AuthorizationServer, algorithm: str
) -> None:
    key = new_key(algorithm)
    issuer.published_beside = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
        {**new_key("RS256").as_dict(private=False), "use": "enc"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": 1},
        {"kty": "new", "kid": "unheard-of"},
        key.as_dict(private=False),
    ]
    try:
        token = forged(trusting, key, algorithm, iss=issuer.issuer)
        assert trusting.client.get("/documents", headers=bearer(token)).status_code == 200
    finally:
        issuer.published_beside = []


def test_a_token_may_leave_out_the_name_of_the_only_key(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    key = issuer.keys[-1]
    nameless = type(key).import_key(
        {name: value for name, value in key.as_dict(private=True).items() if name != "kid"}
    )
    token = jwt.encode(
        {"alg": "RS256"},
        jwt.decode(issuer.token(resource=trusting.url), key).claims,
        nameless,
    )
    assert "kid" not in jwt.decode(token, key).header
    assert trusting.client.get("/documents", headers=bearer(token)).status_code == 200


# Tokens that are not


def test_an_expired_token(trusting: Server, issuer: AuthorizationServer) -> None:
    token = issuer.token(resource=trusting.url, expires_seconds=-120)
    assert "expired" in invalid(trusting.client.get("/documents", headers=bearer(token)))
    late = issuer.token(resource=trusting.url, expires_seconds=-1)
    assert trusting.client.get("/documents", headers=bearer(late)).status_code == 200


def test_a_token_that_was_good_expires_all_the_same(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    almost_over = issuer.token(resource=trusting.url, expires_seconds=3 - TOKEN_LEEWAY_SECONDS)
    answer = trusting.client.get("/documents", headers=bearer(almost_over))
    assert answer.status_code == 200
    for _ in range(1000):
        answer = trusting.client.get("/documents", headers=bearer(almost_over))
        if answer.status_code != 200:
            break
        time.sleep(0.01)
    assert "expired" in invalid(answer)


@pytest.mark.parametrize("resource", ["https://elsewhere.example.org", None])
def test_a_token_for_another_audience(
    trusting: Server, issuer: AuthorizationServer, resource: str | None
) -> None:
    token = issuer.token(resource=resource)
    assert "audience" in invalid(trusting.client.get("/documents", headers=bearer(token)))


def test_a_token_of_another_issuer(trusting: Server) -> None:
    with AuthorizationServer() as other:
        token = other.token(resource=trusting.url)
    assert "issuer" in invalid(trusting.client.get("/documents", headers=bearer(token)))


def test_a_token_that_names_another_issuer(trusting: Server, issuer: AuthorizationServer) -> None:
    token = forged(trusting, issuer.keys[-1], iss="https://other.example.org")
    assert "issuer" in invalid(trusting.client.get("/documents", headers=bearer(token)))


@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "sub"])
def test_a_token_without_a_claim_it_needs(
    trusting: Server, issuer: AuthorizationServer, claim: str
) -> None:
    claims: dict[str, Any] = {"iss": issuer.issuer, claim: None}
    token = forged(trusting, issuer.keys[-1], **claims)
    assert claim in invalid(trusting.client.get("/documents", headers=bearer(token)))


@pytest.mark.parametrize(
    "claims",
    [
        {"nbf": 4102444800},
        {"exp": "soon"},
        {"exp": 1e400},
        {"exp": 10**400},
        {"aud": {"url": "x"}},
        {"aud": [7]},
        {"sub": 7},
        {"iss": ["x"]},
    ],
)
def test_a_signed_token_with_odd_claims(
    trusting: Server, issuer: AuthorizationServer, claims: dict[str, Any]
) -> None:
    token = forged(trusting, issuer.keys[-1], **{"iss": issuer.issuer, **claims})
    invalid(trusting.client.get("/documents", headers=bearer(token)))


def _segment(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _unsigned(trusting: Server, issuer: AuthorizationServer, header: dict[str, Any]) -> str:
    claims = {
        "iss": issuer.issuer,
        "sub": "alice",
        "aud": trusting.url,
        "exp": int(time.time()) + 600,
        "scope": ALL_SCOPES,
    }
    return f"{_segment(header)}.{_segment(claims)}"


@pytest.mark.parametrize("algorithm", ["none", "None", "", None, 7])
def test_an_unsigned_token(
    trusting: Server, issuer: AuthorizationServer, algorithm: object
) -> None:
    unsigned = _unsigned(trusting, issuer, {"alg": algorithm, "kid": issuer.keys[-1].kid})
    for signature in ("", _segment(b"x")):
        answer = trusting.client.get("/documents", headers=bearer(f"{unsigned}.{signature}"))
        invalid(answer)


def test_a_public_key_is_no_shared_secret(trusting: Server, issuer: AuthorizationServer) -> None:
    """The classic confusion: HMAC with the text of the public key, which everybody knows."""
    key = issuer.keys[-1]
    public = key.as_dict(private=False)
    unsigned = _unsigned(trusting, issuer, {"alg": "HS256", "kid": key.kid})
    for secret in (
        key.as_pem(private=False),
        key.as_der(private=False),
        json.dumps(public).encode(),
    ):
        signature = hmac.digest(secret, unsigned.encode(), "sha256")
        token = f"{unsigned}.{_segment(signature)}"
        assert "signed" in invalid(trusting.client.get("/documents", headers=bearer(token)))


def test_a_key_of_the_attackers_own_under_a_known_name(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    impostor = new_key("RS256")
    stated: Any = {**impostor.as_dict(private=True), "kid": issuer.keys[-1].kid}
    token = forged(trusting, type(impostor).import_key(stated), iss=issuer.issuer)
    assert "is invalid" in invalid(trusting.client.get("/documents", headers=bearer(token)))


def test_a_changed_token(trusting: Server, issuer: AuthorizationServer) -> None:
    header, _, signature = issuer.token("zibaldone:read", resource=trusting.url).split(".")
    _, widened, _ = issuer.token(ALL_SCOPES, resource=trusting.url).split(".")
    changed = f"{header}.{widened}.{signature}"
    assert "is invalid" in invalid(trusting.client.get("/documents", headers=bearer(changed)))


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "a.b.c",
        "..",
        f"{_segment({'alg': 'RS256'})}..",
        f"{_segment([])}.{_segment({})}.x",
        f"{_segment({'alg': 'RS256', 'kid': 7})}.{_segment({})}.x",
        f"{_segment({'alg': 'RS256', 'crit': ['x'], 'x': 1})}.{_segment({})}.x",
        f"{_segment(b'[' * 9000)}.{_segment({})}.x",
        f"{_segment({'alg': 'RS256', 'kid': 'x' * 20000})}.{_segment({})}.x",
        "\u00e9.\u00e9.\u00e9",
    ],
)
def test_what_is_no_token_at_all(trusting: Server, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode("latin-1")}
    invalid(trusting.client.get("/documents", headers=headers))


def test_a_token_does_not_belong_into_a_url(trusting: Server, issuer: AuthorizationServer) -> None:
    token = issuer.token(resource=trusting.url)
    answer = trusting.client.post(f"/gpt-mcp/{token}/mcp", json={})
    refusal(answer, 401, "UNAUTHENTICATED")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


# Scopes


@pytest.mark.parametrize("scope", ["openid email", "zibaldone:everything", ""])
def test_a_token_without_a_scope_of_ours(
    trusting: Server, issuer: AuthorizationServer, scope: str
) -> None:
    token = issuer.token(scope, resource=trusting.url)
    for path in ("/documents", "/mcp"):
        answer = trusting.client.post(path, json={}, headers=bearer(token))
        refusal(answer, 403, "INSUFFICIENT_SCOPE")
        challenge = challenge_of(answer)
        assert challenge["error"] == "insufficient_scope"
        assert challenge["scope"] == ALL_SCOPES


def test_a_token_that_lacks_the_scope_of_one_tool(
    trusting: Server, issuer: AuthorizationServer
) -> None:
    token = issuer.token("zibaldone:read", resource=trusting.url)
    assert "result" in call(trusting, token, "list_documents", {}).json()
    new = {"path": "never/made", "content": "x"}
    over_mcp = call(trusting, token, "upload_document", new)
    over_rest = trusting.client.post("/documents", json=new, headers=bearer(token))
    for answer, path in ((over_mcp, "/mcp"), (over_rest, "")):
        assert refusal(answer, 403, "INSUFFICIENT_SCOPE") == {"scopes": ["zibaldone:write"]}
        challenge = challenge_of(answer)
        assert challenge["error"] == "insufficient_scope"
        assert challenge["scope"] == "zibaldone:write"
        assert challenge["resource_metadata"] == trusting.url + WELL_KNOWN + path
    writer = issuer.token("zibaldone:read zibaldone:write", resource=trusting.url)
    deletion = trusting.client.delete(at("never/made"), headers=bearer(writer))
    assert challenge_of(deletion)["scope"] == "zibaldone:delete"


def test_no_token_is_in_the_log(trusting: Server, issuer: AuthorizationServer) -> None:
    good = issuer.token(resource=trusting.url)
    expired = issuer.token(resource=trusting.url, expires_seconds=-120)
    for token in (good, expired):
        trusting.client.get("/documents", headers=bearer(token))
        call(trusting, token, "upload_document", {"path": "logged/token", "content": "x"})
        trusting.client.post(f"/gpt-mcp/{token}/mcp", json={})
        for part in token.split("."):
            assert part not in trusting.log()

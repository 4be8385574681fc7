# The library has no types of its own.
# mypy: disable-error-code="import-untyped,misc,no-untyped-call"
"""A real OAuth 2.1 authorization server on loopback, built from Authlib and Flask.

Client credentials, authorization code with PKCE, dynamic client registration, resource indicators,
signed access tokens (RFC 9068). Whoever asks for authorization is the user, and consents to what
`consent` allows.
"""

from __future__ import annotations

import gzip
import logging
import secrets
import threading
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import flask
import httpx2 as httpx
from authlib.integrations.flask_oauth2 import AuthorizationServer as FlaskAuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, OAuth2Error, grants
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from werkzeug.serving import BaseWSGIServer, make_server

_EXPIRES_SECONDS = 600
_POLL_SECONDS = 0.02

Key = RSAKey | ECKey | OKPKey


def new_key(algorithm: str) -> Key:
    parameters: Any = {"kid": secrets.token_hex(4), "use": "sig"}
    match algorithm[:2]:
        case "ES":
            curve = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[algorithm]
            return ECKey.generate_key(curve, parameters)
        case "Ed":
            return OKPKey.generate_key("Ed25519", parameters)
        case _:
            return RSAKey.generate_key(2048, parameters)


@dataclass
class Client(ClientMixin):
    client_id: str
    client_secret: str
    metadata: dict[str, Any]
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of its tokens, over those that any token has."""
    expires_seconds: int = _EXPIRES_SECONDS

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        uri: str = self.metadata["redirect_uris"][0]
        return uri

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.metadata["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(client_secret, self.client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        del endpoint
        known: str = self.metadata.get("token_endpoint_auth_method", "client_secret_basic")
        return method == known

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.metadata["grant_types"]


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class User:
    def get_user_id(self) -> str:
        return "alice"


class AuthorizationServer:
    def __init__(
        self,
        *,
        algorithm: str = "RS256",
        path: str = "",
        metadata_name: str = "oauth-authorization-server",
        port: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.keys = [new_key(algorithm)]
        """The last one signs; all are published."""
        self.published_beside: list[dict[str, Any]] = []
        self.clients: dict[str, Client] = {}
        self.codes: dict[str, Code] = {}
        self.consent: set[str] | None = None
        """Scopes the user allows; None: whatever is asked for."""
        self.claimed_issuer: str | None = None
        self.packs_keys = False
        """Sends the keys as gzip, whatever was asked for."""
        self.answered: Counter[str] = Counter()
        self.was_asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._app = flask.Flask("authorization_server")
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._listening: BaseWSGIServer = make_server("127.0.0.1", port, self._app, threaded=True)
        self.port = self._listening.port
        self.issuer = f"http://127.0.0.1:{self.port}{path}"
        self._thread = threading.Thread(
            target=self._listening.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )
        self._oauth = _Protocol(self)
        self._add_routes(path, metadata_name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self.may_answer.set()
        if self._thread.is_alive():
            self._listening.shutdown()
            self._thread.join()
        self._listening.server_close()

    def rotate(self, *, withdraw: bool = False) -> None:
        """Sign with a new key from now on; `withdraw`: the old ones are no longer published."""
        self.keys = [*([] if withdraw else self.keys), new_key(self.algorithm)]

    def token(
        self,
        scope: str = "zibaldone:read zibaldone:write zibaldone:delete",
        *,
        resource: str | None,
        claims: dict[str, Any] | None = None,
        expires_seconds: int = _EXPIRES_SECONDS,
    ) -> str:
        """An access token for a new client of its own, by the client credentials grant."""
        client = Client(
            client_id=f"client-{secrets.token_hex(4)}",
            client_secret=secrets.token_hex(16),
            metadata={"grant_types": ["client_credentials"]},
            claims=claims or {},
            expires_seconds=expires_seconds,
        )
        self.clients[client.client_id] = client
        answer = httpx.post(
            f"{self.issuer}/token",
            data={
                "grant_type": "client_credentials",
                "scope": scope,
                **({"resource": resource} if resource else {}),
            },
            auth=(client.client_id, client.client_secret),
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.claimed_issuer or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def jwks(self) -> dict[str, Any]:
        public = [key.as_dict(private=False) for key in self.keys]
        return {"keys": [*self.published_beside, *public]}

    def _add_routes(self, path: str, metadata_name: str) -> None:
        app = self._app

        @app.get(f"/.well-known/{metadata_name}{path}")
        def metadata() -> Any:
            self.was_asked.set()
            self.may_answer.wait()
            self.answered["metadata"] += 1
            return self.metadata()

        @app.get(f"{path}/jwks")
        def jwks() -> Any:
            self.answered["jwks"] += 1
            if not self.packs_keys:
                return self.jwks()
            packed = gzip.compress(flask.json.dumps(self.jwks()).encode())
            return flask.Response(packed, headers={"content-encoding": "gzip"})

        @app.post(f"{path}/token")
        def token() -> Any:
            return self._oauth.create_token_response()

        @app.post(f"{path}/register")
        def register() -> Any:
            return self._oauth.create_endpoint_response("client_registration")

        @app.get(f"{path}/authorize")
        def authorize() -> Any:
            user = User()
            try:
                grant = self._oauth.get_consent_grant(end_user=user)
            except OAuth2Error as error:
                return flask.Response(str(error), status=400)
            return self._oauth.create_authorization_response(grant_user=user, grant=grant)


class _Tokens(JWTBearerTokenGenerator):
    def __init__(self, host: AuthorizationServer) -> None:
        super().__init__(
            issuer=host.issuer,
            alg=host.algorithm,
            expires_generator=lambda client, grant_type: client.expires_seconds,
        )
        self._host = host

    def get_jwks(self) -> KeySet:
        return KeySet([self._host.keys[-1]])

    def get_audiences(self, client: Client, user: User, scope: str) -> Any:
        del user, scope
        return flask.request.form.getlist("resource") or client.client_id

    def get_extra_claims(
        self, client: Client, grant_type: str, user: User, scope: str
    ) -> dict[str, Any]:
        del grant_type, user, scope
        return client.claims


class _CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "none")

    def save_authorization_code(self, code: str, request: Any) -> None:
        allowed = self.server.host.consent
        asked = (request.payload.scope or "").split()
        self.server.host.codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=" ".join(scope for scope in asked if allowed is None or scope in allowed),
            code_challenge=request.payload.data["code_challenge"],
            code_challenge_method=request.payload.data["code_challenge_method"],
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        known: Code | None = self.server.host.codes.get(code)
        return known if known and known.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.host.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> User:
        del authorization_code
        return User()


class _Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request: Any) -> bool:
        return True

    def get_server_metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.server.host.metadata()
        return metadata

    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any
    ) -> Client:
        client = Client(client_info["client_id"], client_info["client_secret"], client_metadata)
        self.server.host.clients[client.client_id] = client
        return client


class _Identification(IssuerParameter):
    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        return self._issuer


class _Protocol(FlaskAuthorizationServer):
    """The library's own server, told where things are kept."""

    def __init__(self, host: AuthorizationServer) -> None:
        super().__init__(query_client=host.clients.get, save_token=lambda token, request: None)
        self.host = host
        self.register_token_generator("default", _Tokens(host))
        self.register_grant(grants.ClientCredentialsGrant)
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_endpoint(_Registration)
        self.register_extension(_Identification(host.issuer))

"""Settings and Runtime → the HTTP application."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from zibaldone.access.loopback import is_loopback
from zibaldone.errors import ConfigurationError, NotConfigured
from zibaldone.protocol.surface import Surface
from zibaldone.settings import Settings
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import Runtime
from zibaldone.web.app import App, Serving, build_app
from zibaldone.web.auth import Authenticator, AuthRules
from zibaldone.web.gate import Gate
from zibaldone.web.guard import GuardRules
from zibaldone.web.issuer import IssuerKeys
from zibaldone.web.oauth import TokenVerifier
from zibaldone.web.resource import ProtectedResource
from zibaldone.web.routes import ROUTES, Route
from zibaldone.wiring.background import build_supervisor
from zibaldone.wiring.catalogue import build_catalogue

_log = logging.getLogger("zibaldone.wiring")


def build_application(
    settings: Settings,
    runtime: Runtime,
    *,
    catalogue: Catalogue | None = None,
    routes: Sequence[Route] = ROUTES,
    surface: type[Surface] = Surface,
) -> App:
    """`surface` is the class that offers a profile to MCP clients."""
    if catalogue is None:
        catalogue = build_catalogue(settings)
    _require_known(settings.capability_routes, catalogue)
    auth_rules = _auth_rules(settings, catalogue)
    serving = Serving(
        runtime=runtime,
        catalogue=catalogue,
        authenticator=Authenticator(runtime.store, auth_rules, catalogue),
        gate=Gate(settings.limits),
        guard=GuardRules(
            body_bytes_max=settings.limits.request_body_bytes_max,
            allowed_hosts=_own_hosts(settings),
            allowed_origins=settings.allowed_origins,
        ),
        routes=routes,
        surfaces=[surface(profile, catalogue) for profile in catalogue.profiles],
        capability_routes=settings.capability_routes,
        notification_status=settings.notification_status,
        extra_routes={} if auth_rules.resource is None else auth_rules.resource.routes(),
        background=build_supervisor(runtime),
    )
    return build_app(serving)


def _auth_rules(settings: Settings, catalogue: Catalogue) -> AuthRules:
    if not settings.oauth_issuer:
        return AuthRules(
            open_full_profile=settings.public_full_profile,
            open_without_keys=is_loopback(settings.host),
        )
    resource = ProtectedResource(settings.public_url, settings.oauth_issuer, catalogue)
    try:
        keys = IssuerKeys(settings.oauth_issuer, settings.limits)
        verify_token = TokenVerifier(keys, resource, settings.oauth_audience)
    except NotConfigured as error:
        raise ConfigurationError(f"oauth_issuer is set. {error.message}") from None
    return AuthRules(
        verify_token=verify_token,
        resource=resource,
        open_full_profile=settings.public_full_profile,
    )


def _own_hosts(settings: Settings) -> tuple[str, ...]:
    """Host names under which the server may be called, in addition to loopback."""
    public = urlsplit(settings.public_url).hostname
    return (*settings.allowed_hosts, settings.host, *((public,) if public else ()))


def _require_known(routes: dict[str, Any], catalogue: Catalogue) -> None:
    names = {profile.name for profile in catalogue.profiles}
    for word, profile in routes.items():
        if profile not in names:
            raise ConfigurationError(
                f"capability_routes.{word}: there is no profile {profile!r}; "
                f"there are {', '.join(sorted(names))}."
            )

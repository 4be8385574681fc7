"""Settings and Runtime → the HTTP application."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from zibaldone.errors import ConfigurationError, NotConfigured, ZibaldoneError
from zibaldone.protocol.surface import Surface
from zibaldone.settings import Settings
from zibaldone.store.port import Store
from zibaldone.tools.profiles import Profile, all_profiles
from zibaldone.tools.spec import Runtime
from zibaldone.web.app import App, Serving, build_app
from zibaldone.web.auth import Authenticator, AuthRules
from zibaldone.web.gate import Gate
from zibaldone.web.guard import Background, GuardRules
from zibaldone.web.issuer import IssuerKeys
from zibaldone.web.oauth import TokenVerifier
from zibaldone.web.resource import ProtectedResource

_log = logging.getLogger("zibaldone.wiring")


def build_application(
    settings: Settings, runtime: Runtime, *, surface: type[Surface] = Surface
) -> App:
    """`surface` is the class that offers a profile to MCP clients."""
    profiles = all_profiles(settings.profiles)
    _require_known(settings.capability_routes, profiles)
    auth_rules = _auth_rules(settings, profiles)
    serving = Serving(
        runtime=runtime,
        authenticator=Authenticator(runtime.store, auth_rules),
        gate=Gate(settings.limits.requests_max, settings.limits.requests_per_key_max),
        guard=GuardRules(
            body_bytes_max=settings.limits.request_body_bytes_max,
            allowed_hosts=_own_hosts(settings),
            allowed_origins=settings.allowed_origins,
        ),
        surfaces=[surface(profile) for profile in profiles],
        capability_routes=settings.capability_routes,
        notification_status=settings.notification_status,
        extra_routes={} if auth_rules.resource is None else auth_rules.resource.routes(),
        background=_background(runtime),
    )
    return build_app(serving)


def _background(runtime: Runtime) -> tuple[Background, ...]:
    if runtime.index is None or runtime.embedder is None:
        return ()
    return (runtime.index.run, partial(_prepare_model, runtime.store, runtime.embedder.identity))


async def _prepare_model(store: Store, identity: str) -> None:
    """Ahead of the first search, which would have to wait otherwise."""
    try:
        await store.prepare_model(identity)
    except ZibaldoneError as error:
        _log.warning("the vectors were not prepared: %s [%s]", error.message, error.code)


def _auth_rules(settings: Settings, profiles: Sequence[Profile]) -> AuthRules:
    if not settings.oauth_issuer:
        return AuthRules(open_full_profile=settings.public_full_profile)
    resource = ProtectedResource(settings.public_url, settings.oauth_issuer, tuple(profiles))
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
    """Names under which the server may be called, beside those of loopback."""
    public = urlsplit(settings.public_url).hostname
    return (*settings.allowed_hosts, settings.host, *((public,) if public else ()))


def _require_known(routes: dict[str, Any], profiles: Sequence[Profile]) -> None:
    names = {profile.name for profile in profiles}
    for word, profile in routes.items():
        if profile not in names:
            raise ConfigurationError(
                f"capability_routes.{word}: there is no profile {profile!r}; "
                f"there are {', '.join(sorted(names))}."
            )

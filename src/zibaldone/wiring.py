"""The only place where the parts are put together: Settings → Runtime → application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from zibaldone.embed.open import EmbedderSettings, open_embedder
from zibaldone.embed.port import Embedder
from zibaldone.embed.watched import Watched
from zibaldone.errors import ConfigurationError
from zibaldone.find.query_vector import QueryVectors
from zibaldone.index.worker import IndexWorker
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.fetch import Fetcher
from zibaldone.protocol.surface import Surface
from zibaldone.settings import Settings
from zibaldone.store.open import open_store
from zibaldone.tools.profiles import Profile, all_profiles
from zibaldone.tools.spec import Runtime
from zibaldone.web.app import App, Serving, build_app
from zibaldone.web.auth import Authenticator, AuthRules
from zibaldone.web.gate import Gate
from zibaldone.web.guard import Background, GuardRules
from zibaldone.web.issuer import IssuerKeys
from zibaldone.web.oauth import TokenVerifier
from zibaldone.web.resource import ProtectedResource


def build_runtime(settings: Settings) -> Runtime:
    limits = settings.limits
    chosen = chosen_embedder(settings)
    embedder = None if chosen is None else Watched(chosen)
    store = open_store(settings.data, limits)
    return Runtime(
        store=store,
        limits=limits,
        query_vectors=QueryVectors(embedder),
        embedder=embedder,
        index=None if embedder is None else IndexWorker(store, embedder),
        fetcher=Fetcher(
            roots=settings.ingest_roots,
            hosts=settings.ingest_hosts,
            bytes_max=limits.ingest_bytes_max,
            seconds_max=limits.ingest_seconds_max,
        ),
        converter=Converter(
            bytes_max=limits.ingest_bytes_max,
            text_bytes_max=limits.document_body_bytes_max,
            seconds_max=limits.ingest_seconds_max,
        ),
    )


def chosen_embedder(settings: Settings) -> Embedder | None:
    return open_embedder(
        EmbedderSettings(
            kind=settings.embedder,
            url=settings.embedding_url,
            model=settings.embedding_model,
            dimensions=settings.embedding_dimensions,
            api_key=settings.embedding_api_key,
        )
    )


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
    if runtime.index is None:
        return ()
    return (runtime.index.run, runtime.index.load_vectors)


def _auth_rules(settings: Settings, profiles: Sequence[Profile]) -> AuthRules:
    if not settings.oauth_issuer:
        return AuthRules(open_full_profile=settings.public_full_profile)
    resource = ProtectedResource(settings.public_url, settings.oauth_issuer, tuple(profiles))
    keys = IssuerKeys(settings.oauth_issuer, settings.limits)
    return AuthRules(
        verify_token=TokenVerifier(keys, resource, settings.oauth_audience),
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

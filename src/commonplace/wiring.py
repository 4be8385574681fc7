"""The only place where the parts are put together: Settings → Runtime → application."""

from __future__ import annotations

from commonplace.keep.fetch import Fetcher
from commonplace.settings import Settings
from commonplace.store.open import open_store
from commonplace.tools.spec import Runtime
from commonplace.web.app import App, build_app
from commonplace.web.guard import GuardRules


def build_runtime(settings: Settings) -> Runtime:
    limits = settings.limits
    return Runtime(
        store=open_store(settings.data, limits),
        limits=limits,
        fetcher=Fetcher(
            roots=settings.ingest_roots,
            hosts=settings.ingest_hosts,
            bytes_max=limits.ingest_bytes_max,
            seconds_max=limits.ingest_seconds_max,
        ),
    )


def build_application(settings: Settings, runtime: Runtime) -> App:
    rules = GuardRules(
        body_bytes_max=settings.limits.request_body_bytes_max,
        allowed_hosts=(*settings.allowed_hosts, settings.host),
        allowed_origins=settings.allowed_origins,
    )
    return build_app(runtime, rules)

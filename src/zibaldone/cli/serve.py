"""zibaldone serve."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zibaldone.access.loopback import is_loopback
from zibaldone.access.principal import Tenant
from zibaldone.cli import context, logs
from zibaldone.errors import ConfigurationError
from zibaldone.model.instant import now_us
from zibaldone.settings import Settings

if TYPE_CHECKING:
    from zibaldone.tools.spec import Runtime


@click.command()
@click.option("--host", help="Address to serve on.")
@click.option("--port", type=int, help="Port to serve on.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the data.")
@click.option("--store", help="Where documents are kept: a path or URL.")
@click.option("--read-store", help="URL of a replica of the store, for reads.")
@click.option("--reranker", help="URL of a /rerank endpoint that orders the best hits.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.option(
    "--log-format",
    type=click.Choice(["auto", "text", "json"]),
    help="How to write the log; auto is text on a terminal, else JSON lines.",
)
@click.pass_obj
def serve(options: context.Options, /, data: Path | None, store: str | None, **flags: Any) -> None:
    """Serve the documents over HTTP."""
    from zibaldone.cli.place import log_creation
    from zibaldone.web.server import server
    from zibaldone.wiring.application import build_application
    from zibaldone.wiring.runtime import build_runtime
    from zibaldone.wiring.sources import reconcile_sources

    if data is not None:
        options = replace(options, data=data)
    if store is not None:
        options = replace(options, store=store)
    settings = options.settings(**flags)
    logs.configure(settings.log_level, settings.log_format)
    # uvicorn shuts down and raises the signal again; this way the store is closed too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    log_creation(settings)
    runtime = build_runtime(settings)
    try:
        _require_closed(settings, runtime)
        _require_free(settings.host, settings.port)
        asyncio.run(reconcile_sources(settings, runtime.store))
        app = build_application(settings, runtime)
        server(
            app,
            settings.host,
            settings.port,
            settings.limits,
            close=runtime.store.close,
            started=_announcing(settings, runtime),
        ).run()
    finally:
        runtime.close()


def _announcing(settings: Settings, runtime: Runtime) -> Callable[[int], None]:
    """What to do when the server is up: tell people, but not a program that reads the log."""
    from zibaldone.cli.start import echo_start, look
    from zibaldone.wiring.runtime import log_model

    if not logs.is_text(settings.log_format):
        return lambda port: log_model(settings, runtime)
    start = asyncio.run(look(settings, runtime))
    return lambda port: echo_start(start, port, has_color=logs.has_color())


def _require_free(host: str, port: int) -> None:
    """Refuse a port in use, with advice: often a second server was started by mistake."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            raise ConfigurationError(
                f"Cannot serve on {host}, port {port}: {problem.strerror}. Another server may be "
                "running there. Choose another port with --port or ZIBALDONE_PORT."
            ) from None


def _require_closed(settings: Settings, runtime: Runtime) -> None:
    """Refuse to serve other machines without keys: whoever reaches the port is the operator."""
    if is_loopback(settings.host) or settings.oauth_issuer:
        return
    keys = asyncio.run(runtime.store.read(Tenant(), lambda reader: reader.api_keys.all()))
    if not any(key.is_valid(now_us()) for key in keys):
        raise ConfigurationError(
            f"Refusing to serve on {settings.host} without access keys: anyone on the network "
            "could read and write. Create a key with 'zibaldone key create', set oauth_issuer, or "
            "serve on 127.0.0.1 behind a proxy that authenticates."
        )

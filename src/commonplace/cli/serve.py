"""commonplace serve."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import click
import uvicorn

from commonplace import wiring
from commonplace.access.principal import Scope
from commonplace.cli import context, logs
from commonplace.errors import ConfigurationError
from commonplace.model.instant import now_us
from commonplace.settings import Settings
from commonplace.tools.spec import Runtime

_KEEP_ALIVE_SECONDS = 75
_SHUTDOWN_SECONDS = 10
_BACKLOG = 2048


@click.command()
@click.option("--host", help="Address to serve on.")
@click.option("--port", type=int, help="Port to serve on.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the database.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.option("--conformance", is_flag=True, help="Add the fixtures of the MCP conformance suite.")
@click.pass_obj
def serve(options: context.Options, /, data: Path | None, conformance: bool, **flags: Any) -> None:
    """Serve the documents over HTTP."""
    if data is not None:
        options = context.Options(data=data, config=options.config)
    settings = options.settings(**flags)
    logs.configure(settings.log_level)
    runtime = wiring.build_runtime(settings)
    try:
        _require_closed(settings, runtime)
        app = wiring.build_application(settings, runtime, conformance=conformance)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            backlog=_BACKLOG,
        )
        uvicorn.Server(config).run()
    finally:
        runtime.close()


def _require_closed(settings: Settings, runtime: Runtime) -> None:
    """Without keys everybody who reaches the port is the operator: only this machine may."""
    if _is_loopback(settings.host) or settings.oauth_issuer:
        return
    keys = runtime.store.read_now(Scope(), lambda reader: reader.api_keys.all())
    if not any(key.is_valid(now_us()) for key in keys):
        raise ConfigurationError(
            f"Refusing to serve on {settings.host} without access keys: anyone on the network "
            "could read and write. Make one with 'commonplace key create', or set oauth_issuer, "
            "or serve on 127.0.0.1 behind a proxy that authenticates."
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

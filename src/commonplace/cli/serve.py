"""commonplace serve."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import click
import uvicorn

from commonplace import wiring
from commonplace.cli import context, logs
from commonplace.errors import ConfigurationError

_KEEP_ALIVE_SECONDS = 75
_SHUTDOWN_SECONDS = 10
_BACKLOG = 2048


@click.command()
@click.option("--host", help="Address to serve on.")
@click.option("--port", type=int, help="Port to serve on.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the database.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.pass_obj
def serve(options: context.Options, data: Path | None, **flags: Any) -> None:
    """Serve the documents over HTTP."""
    if data is not None:
        options = context.Options(data=data, config=options.config)
    settings = options.settings(**flags)
    logs.configure(settings.log_level)
    _require_loopback(settings.host)
    runtime = wiring.build_runtime(settings)
    try:
        app = wiring.build_application(settings, runtime)
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
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
        runtime.store.close()


def _require_loopback(host: str) -> None:
    """Without keys everybody who reaches the port is the operator: only this machine may."""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ConfigurationError(
            f"Refusing to serve on {host} without access keys: anyone on the network could read "
            "and write. Serve on 127.0.0.1 behind a proxy that authenticates."
        )

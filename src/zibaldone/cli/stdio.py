"""zibaldone stdio: for clients that start the server themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click

from zibaldone.access.principal import LOCAL
from zibaldone.cli import context, logs

if TYPE_CHECKING:
    from zibaldone.stdio import StdioServer
    from zibaldone.tools.spec import Runtime


@click.command()
@click.option("--profile", default="mcp", show_default=True, help="Which tools to offer.")
@click.option("--reranker", help="URL of a /rerank endpoint that orders the best hits.")
@click.pass_obj
def stdio(options: context.Options, /, profile: str, reranker: str | None) -> None:
    """Serve MCP over standard input and output."""
    import asyncio

    from zibaldone.cli.place import log_creation
    from zibaldone.protocol.surface import Surface
    from zibaldone.stdio import StdioServer, take_streams
    from zibaldone.wiring.catalogue import build_catalogue
    from zibaldone.wiring.runtime import build_runtime, log_model
    from zibaldone.wiring.sources import reconcile_sources

    source, sink = take_streams()
    settings = options.settings(reranker=reranker)
    logs.configure(settings.log_level, settings.log_format)
    catalogue = build_catalogue(settings)
    surface = Surface(catalogue.profile(profile), catalogue)
    log_creation(settings)
    runtime = build_runtime(settings)
    log_model(settings, runtime)
    try:
        asyncio.run(reconcile_sources(settings, runtime.store))
        server = StdioServer(surface, runtime, LOCAL)
        asyncio.run(_serve(server, runtime, source, sink))
    finally:
        runtime.close()


async def _serve(server: StdioServer, runtime: Runtime, source: BinaryIO, sink: BinaryIO) -> None:
    """What the client writes is indexed here too: there may be no other server."""
    from zibaldone.wiring.background import build_supervisor

    async with build_supervisor(runtime).running():
        await server.serve(source, sink)

"""zibaldone stdio: for clients that start their servers themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click

from zibaldone.access.principal import LOCAL
from zibaldone.cli import context, logs
from zibaldone.errors import ConfigurationError

if TYPE_CHECKING:
    from zibaldone.stdio import StdioServer
    from zibaldone.tools.spec import Runtime


@click.command()
@click.option("--profile", default="mcp", show_default=True, help="Which tools to offer.")
@click.pass_obj
def stdio(options: context.Options, /, profile: str) -> None:
    """Serve MCP over standard input and output."""
    import asyncio

    from zibaldone.protocol.surface import Surface
    from zibaldone.stdio import StdioServer, take_streams
    from zibaldone.tools.profiles import all_profiles
    from zibaldone.wiring.runtime import build_runtime

    source, sink = take_streams()
    settings = options.settings()
    logs.configure(settings.log_level)
    by_name = {known.name: known for known in all_profiles(settings.profiles)}
    if profile not in by_name:
        raise ConfigurationError(
            f"There is no profile {profile!r}; there are {', '.join(by_name)}."
        )
    runtime = build_runtime(settings)
    try:
        server = StdioServer(Surface(by_name[profile]), runtime, LOCAL)
        asyncio.run(_serve(server, runtime, source, sink))
    finally:
        runtime.close()


async def _serve(server: StdioServer, runtime: Runtime, source: BinaryIO, sink: BinaryIO) -> None:
    """What the client writes is indexed here too: there may be no other server."""
    import asyncio

    indexing = None if runtime.index is None else asyncio.create_task(runtime.index.run())
    try:
        await server.serve(source, sink)
    finally:
        if indexing is not None:
            indexing.cancel()
            await asyncio.gather(indexing, return_exceptions=True)

"""zibaldone migrate: everything in one store, moved into another."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from zibaldone.cli import context
from zibaldone.errors import ConfigurationError

if TYPE_CHECKING:
    from zibaldone.exchange.migrate import TableReport
    from zibaldone.store.port import Store


@click.command()
@click.option("--from", "source_url", metavar="URL", help="Default: the store of the settings.")
@click.option("--to", "destination_url", metavar="URL", required=True, help="An empty store.")
@click.option("--restart", is_flag=True, help="Forget what an unfinished migration has copied.")
@context.json_option
@click.pass_obj
@context.resumable()
def migrate(
    options: context.Options,
    /,
    source_url: str | None,
    destination_url: str,
    restart: bool,
    as_json: bool,
) -> None:
    """Move everything into another store.

    It may be of the same engine or of another.

    URL is a path, sqlite:PATH or postgresql://USER@HOST/DATABASE. Stop every process that uses
    either store first. The source is only read. After an interruption, run the same command again:
    it goes on where it was.
    """
    from zibaldone.store.open import inspect_store, open_store, store_url

    settings = options.settings()
    url = source_url or store_url(settings.data, settings.store)
    place = inspect_store(url)
    if not place.is_made:
        raise ConfigurationError(
            f"There is nothing to move: {place.problem or f'{place.description} does not exist'}."
        )
    source = open_store(url, settings.limits)
    try:
        destination = open_store(destination_url, settings.limits, for_transfer=True)
        try:
            reports = asyncio.run(_migrate(source, destination, restart, quiet=as_json))
        finally:
            destination.close()
        if as_json:
            answer = {"from": source.description, "to": destination.description}
            context.echo_json({**answer, "tables": [asdict(report) for report in reports]})
        else:
            _echo(reports)
    finally:
        source.close()


async def _migrate(
    source: Store, destination: Store, restart: bool, *, quiet: bool
) -> list[TableReport]:
    from zibaldone.exchange.migrate import Migration

    migration = Migration(source, destination)
    rows = await migration.begin(restart=restart)
    if not quiet:
        verb = "Going on" if migration.is_resumed else "Moving"
        click.echo(f"{verb} from {source.description} to {destination.description}: {rows} rows")
    with context.progress("Copying", rows) as advance:
        await migration.copy(advance)
    with context.progress("Verifying", 2 * await migration.total()) as advance:
        return await migration.verify(advance)


def _echo(reports: list[TableReport]) -> None:
    rows = [(report.name, f"{report.rows:,}", report.digest) for report in reports]
    context.echo_table([("table", "rows", "hash in both stores"), *rows], right=frozenset({1}))
    click.echo(f"\n{sum(report.rows for report in reports):,} rows moved and verified.")
    click.echo("Now set store to what you gave with --to, and start the server.")

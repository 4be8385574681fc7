"""zibaldone canary: check from outside that the vectors of a deployment follow its documents."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from zibaldone.cli import context
from zibaldone.limits import CANARY_WRITE_SECONDS_DEFAULT

if TYPE_CHECKING:
    from zibaldone.canary.check import Check, Outcome, Report
    from zibaldone.canary.local import LocalDeployment
    from zibaldone.canary.remote import RemoteDeployment

_NAMES = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "K1", "K2", "K3", "K4")


@click.command()
@click.option("--url", help="Server to check; default: serve the store of the settings meanwhile.")
@click.option(
    "--key",
    envvar="CANARY_KEY",
    help="API key for that server; better in the environment variable CANARY_KEY.",
)
@click.option(
    "--check", "names", multiple=True, type=click.Choice(_NAMES), help="Make only this check."
)
@click.option(
    "--seconds",
    type=click.IntRange(1, 3600),
    default=CANARY_WRITE_SECONDS_DEFAULT,
    show_default=True,
    help="How long C6 writes.",
)
@click.option(
    "--slack",
    type=click.FloatRange(1.0, 100.0),
    default=1.0,
    show_default=True,
    help="Multiply all time limits by this, on a slow machine.",
)
@context.json_option
@click.pass_context
def canary(
    ctx: click.Context,
    /,
    url: str | None,
    key: str | None,
    names: tuple[str, ...],
    as_json: bool,
    **amounts: Any,
) -> None:
    """Check a running deployment: do vectors follow documents?

    Writes documents into a folder of its own, checks them and deletes them again, also when it is
    interrupted. The exit code is 1 if a check failed.
    """
    from zibaldone.canary.run import CHECKS

    checks = [check for check in CHECKS if not names or check.name in names]
    options: context.Options = ctx.obj
    try:
        report = asyncio.run(_run(options, url, key, checks, **amounts))
    except asyncio.CancelledError:  # by SIGTERM
        raise click.Abort from None
    if as_json:
        context.echo_json({"ok": report.ok, **asdict(report)})
    else:
        _echo(report)
    if not report.ok:
        ctx.exit(1)


async def _run(
    options: context.Options,
    url: str | None,
    key: str | None,
    checks: Sequence[Check],
    *,
    seconds: int,
    slack: float,
) -> Report:
    from zibaldone.canary.run import run

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - for the type checker
    with contextlib.suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with context.progress("Checking", len(checks)) as advance:

        def count(outcome: Outcome) -> None:
            del outcome
            advance(1)

        async with _deployment(options, url, key) as deployment:
            return await run(
                deployment, checks, write_seconds=seconds, slack=slack, on_outcome=count
            )


def _deployment(
    options: context.Options, url: str | None, key: str | None
) -> LocalDeployment | RemoteDeployment:
    if url is not None:
        from zibaldone.canary.remote import RemoteDeployment

        return RemoteDeployment(url, key)
    from zibaldone.canary.local import LocalDeployment, Parts
    from zibaldone.cli.place import announce_creation
    from zibaldone.store.open import severable, store_url
    from zibaldone.wiring.background import build_supervisor
    from zibaldone.wiring.catalogue import build_catalogue
    from zibaldone.wiring.runtime import build_runtime

    settings = options.settings()
    announce_creation(settings)
    url, sever = severable(store_url(settings.data, settings.store))
    settings = replace(settings, store=url)

    def open_parts() -> Parts:
        runtime = build_runtime(settings)
        return Parts(runtime, build_catalogue(settings), build_supervisor(runtime), sever)

    return LocalDeployment(open_parts)


def _echo(report: Report) -> None:
    click.echo(f"Checked: {context.printable(report.deployment)}\n")
    rows = [
        (outcome.name, outcome.what, outcome.result, f"{outcome.seconds:.2f} s")
        for outcome in report.outcomes
    ]
    context.echo_table([("", "check", "outcome", "time"), *rows], right=frozenset({3}))
    click.echo()
    for outcome in report.outcomes:
        click.echo(f"{outcome.name}: {context.printable(outcome.detail)}")
    for path in report.left_behind:
        click.echo(f"Could not be deleted: {context.printable(path)}", err=True)

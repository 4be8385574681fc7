"""zibaldone index: state and repair of the vector index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from zibaldone.cli import context
from zibaldone.cli.vectors import finish_vectors
from zibaldone.errors import NotConfigured

if TYPE_CHECKING:
    from zibaldone.store.qdrant.feed import FeedState

_COUNTS = (
    ("documents", "documents"),
    ("ready", "  with vectors"),
    ("pending", "  pending"),
    ("failed", "  failed"),
    ("skipped", "  keyword only"),
    ("chunks", "chunks"),
    ("vectors", "  with a vector"),
    ("missing", "  without a vector"),
)
_FAILURES_SHOWN_MAX = 10


@click.group()
def index() -> None:
    """Show and repair the vector index."""


@index.command()
@context.json_option
@click.pass_obj
def status(options: context.Options, /, as_json: bool) -> None:
    """Show how many documents have vectors.

    By model, and what is pending or failed.
    """
    answer = context.run_tool(options, "index_status", {})
    if as_json:
        context.echo_json(answer)
    else:
        _echo_status(answer)


def _echo_status(status: dict[str, Any]) -> None:
    click.echo(f"model: {status['model'] or 'none, keyword search only'}")
    rows = [(label, str(status[name])) for name, label in _COUNTS]
    rows.append(("lag", f"{status['vector_sync_lag_seconds']:.1f} s"))
    context.echo_table(rows, right=frozenset({1}))
    if status["indexed_by"] not in (None, status["model"]):
        click.echo(f"a running process indexes with another model: {status['indexed_by']}")
    for model in status["models"]:
        if model["vectors"] and not model["in_use"]:
            click.echo(f"not in use: {model['vectors']} vectors of {model['identity']}")
    for failure in status["failures"][:_FAILURES_SHOWN_MAX]:
        name, why = (context.printable(failure[part]) for part in ("document_id", "reason"))
        click.echo(f"failed: {name}: {why}", err=True)


@index.command()
@click.option("--heal", is_flag=True, help="Also repair what is found.")
@context.json_option
@click.pass_context
def audit(ctx: click.Context, heal: bool, as_json: bool) -> None:
    """Compare the vectors with the documents.

    Finds vectors without a chunk, and documents without their vectors.
    """
    with context.opened(ctx.obj) as session:
        answer = session.call("audit_sync", {"heal": heal})
        if heal:
            finish_vectors(session)
    if as_json:
        context.echo_json(answer)
    else:
        more = " or more" if answer["truncated"] else ""
        click.echo(f"{answer['orphans']} vectors without a chunk{more}")
        click.echo(f"{answer['ghosts']} documents without their vectors{more}")
        if answer["healed"] is not None:
            removed, queued = answer["healed"].values()
            click.echo(f"repaired: {removed} vectors removed, {queued} documents queued")
    if not answer["consistent"] and not heal:
        ctx.exit(1)


@index.command()
@click.option("--rebuild", is_flag=True, help="Empty it, and fill it from the store.")
@click.option("--forget", is_flag=True, help="Note no more changes for others than this one.")
@context.json_option
@click.pass_obj
def qdrant(options: context.Options, /, rebuild: bool, forget: bool, as_json: bool) -> None:
    """Show how far Qdrant is, or fill it anew (setting vectors).

    A server may keep running. While Qdrant is being filled, searches use the vectors in the store.
    After the setting vectors or the model was changed or removed, use --forget.
    """
    from zibaldone.store.qdrant.feed import forget_mirrors

    with context.opened(options) as session:
        feed = session.runtime.vector_feed
        if forget:
            names = session.run(forget_mirrors(session.runtime.store, feed))
            if as_json:
                context.echo_json({"forgotten": names})
            else:
                click.echo("\n".join(map(context.printable, names)) or "nothing to forget")
            return
        if feed is None:
            raise NotConfigured("There is no index beside the store: set vectors, and an embedder.")
        if rebuild:
            session.run(feed.rebuild())
            with context.progress("Filling", session.run(feed.pending())) as report:
                session.run(feed.drain(report))
        state = session.run(feed.state())
    if as_json:
        context.echo_json(asdict(state))
    else:
        _echo_qdrant(state)
    if state.problem is not None:
        raise click.exceptions.Exit(1)


def _echo_qdrant(state: FeedState) -> None:
    click.echo(f"collection: {context.printable(state.name)}")
    points = "unknown" if state.points is None else str(state.points)
    rows = [
        ("vectors there", points),
        ("documents to take over", str(state.pending)),
        ("applied through", str(state.applied_seq)),
    ]
    context.echo_table(rows, right=frozenset({1}))
    if state.problem is not None:
        click.echo(f"{context.printable(state.problem)}", err=True)


@index.command()
@click.option("--yes", is_flag=True, help="Remove them; without this option they are only counted.")
@context.json_option
@click.pass_obj
def cleanup(options: context.Options, /, yes: bool, as_json: bool) -> None:
    """Remove vectors whose chunk no longer exists."""
    answer = context.run_tool(options, "cleanup_orphans", {"dry_run": not yes})
    if as_json:
        context.echo_json(answer)
    elif yes:
        click.echo(f"{answer['removed']} removed")
    else:
        more = " or more" if answer["truncated"] else ""
        click.echo(f"{answer['found']}{more} found; use --yes to remove them")

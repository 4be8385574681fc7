"""Vectors of what a command wrote. A running server makes them; without one the command does."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from zibaldone.cli import context
from zibaldone.limits import COMMAND_VECTORS_SECONDS_MAX

if TYPE_CHECKING:
    from zibaldone.cli.session import Session

no_vectors_option = click.option(
    "--no-vectors", is_flag=True, help="Leave the vectors to a server, or to 'zibaldone reindex'."
)


class Vectors(TypedDict):
    embedded: int
    """Chunks that this command embedded."""
    pending: int
    """Changes that wait for their vectors, and that no running server works on."""


def finish_vectors(session: Session, *, is_wanted: bool = True, is_brief: bool = False) -> Vectors:
    """Make the vectors that are pending, if there is a model and no running process does it.

    `is_brief`: for a command that wrote a single document. It stops after a few seconds, if other
    documents were waiting before it. What is left is said on standard error.
    """
    from zibaldone.index.finish import Finished, finish_pending, pending_documents

    runtime = session.runtime
    if runtime.index is None or is_served(session):
        return {"embedded": 0, "pending": 0}
    pending = session.run(pending_documents(runtime.store))
    finished = Finished(0, pending)
    if pending and is_wanted:
        seconds_max = COMMAND_VECTORS_SECONDS_MAX if is_brief else None
        with context.progress("Embedding", pending) as advance:
            finished = session.run(
                finish_pending(runtime.store, runtime.index, advance, seconds_max=seconds_max)
            )
    if finished.problem is not None:
        problem = context.printable(finished.problem)
        click.echo(f"Vectors were not made: {problem}", err=True)
    if finished.pending:
        changes = "1 change has" if finished.pending == 1 else f"{finished.pending} changes have"
        click.echo(
            f"Found by keyword only: {changes} no vectors yet. "
            "'zibaldone reindex' makes them, or a server when it runs.",
            err=True,
        )
    return {"embedded": finished.chunks, "pending": finished.pending}


def is_served(session: Session) -> bool:
    """Whether a running process makes vectors in this store."""
    from zibaldone.index.ownership import model_in_use
    from zibaldone.model.instant import now_us

    return session.run(model_in_use(session.runtime.store, now_us())) is not None


def unserved_advice(session: Session) -> str:
    """What to add to a note about missing vectors: without a server, nobody is making them."""
    from zibaldone.index.finish import pending_documents

    runtime = session.runtime
    if runtime.index is None or is_served(session):
        return ""
    if not session.run(pending_documents(runtime.store)):
        return ""
    return " No server runs; 'zibaldone reindex' makes the vectors."

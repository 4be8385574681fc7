"""zibaldone reindex: embed what has no vector, also for a model that is not in use yet."""

from __future__ import annotations

import time
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.embed.open import EMBEDDERS
from zibaldone.embed.port import Embedder
from zibaldone.errors import ConfigurationError, NotConfigured
from zibaldone.index.reindex import catch_up, fill
from zibaldone.index.sweep import drop_other_models


@click.command()
@click.option(
    "--embedder",
    type=click.Choice([kind for kind in EMBEDDERS if kind not in ("auto", "none")]),
    help="Embedder to use; default: the one in the settings.",
)
@click.option("--model", "embedding_model", help="Model of the remote embedder.")
@click.option(
    "--dimensions", "embedding_dimensions", type=int, help="Length of that model's vectors."
)
@click.option(
    "--drop-others",
    is_flag=True,
    help="Then remove the vectors of all other models, except one that a running process uses.",
)
@context.json_option
@click.pass_context
@context.resumable()
def reindex(ctx: click.Context, /, drop_others: bool, as_json: bool, **flags: Any) -> None:
    """Embed every chunk that has no vector yet.

    A server may keep running. After an interruption, run it again: finished work is kept. To
    change the model without a gap, run it for the new model, then change the settings and restart.
    """
    options: context.Options = ctx.obj
    started_s = time.monotonic()
    with context.opened(options, **flags) as session:
        answer = _reindex(session, options, drop_others=drop_others)
    answer["seconds"] = round(time.monotonic() - started_s, 3)
    if as_json:
        context.echo_json(answer)
    else:
        _echo(answer)
    if answer["missing"] or answer["failures"]:
        ctx.exit(1)


def _reindex(
    session: context.Session, options: context.Options, *, drop_others: bool
) -> dict[str, Any]:
    runtime = session.runtime
    if runtime.index is None or runtime.embedder is None:
        raise NotConfigured("There is no embedding model. To install one: zibaldone model install")
    model_id = session.run(runtime.index.model_id())
    before = session.call("index_status", {})
    failures = before["failures"]
    with context.progress("Embedding", before["missing"]) as report:
        if _is_in_use(runtime.embedder, options, before["indexed_by"]):
            embedded = session.run(catch_up(runtime.store, runtime.index, report))
            after = session.call("index_status", {})
            failures = after["failures"]
        else:
            filled = session.run(fill(runtime.store, runtime.embedder, model_id, report))
            embedded = filled.chunks
            after = session.call("index_status", {})
            failures = [{"document_id": name, "reason": why} for name, why in filled.failed.items()]
    dropped = 0
    if drop_others and not after["missing"]:
        dropped = session.run(drop_other_models(runtime.store, model_id))
    return {
        "model": runtime.embedder.identity,
        "embedded": embedded,
        "missing": after["missing"],
        "failures": failures,
        "dropped": dropped,
        "kept": _others_kept(after) if drop_others else None,
    }


def _others_kept(status: dict[str, Any]) -> str | None:
    """The model whose vectors were kept because a running process uses it."""
    in_use: str | None = status["indexed_by"]
    return None if in_use == status["model"] else in_use


def _is_in_use(embedder: Embedder, options: context.Options, indexed_by: str | None) -> bool:
    """Whether servers use this model, so that the queue and the documents' status belong to it.

    It is the one in the settings, unless a server still runs with older settings.
    """
    from zibaldone.wiring.runtime import chosen_embedder

    if indexed_by is not None:
        return indexed_by == embedder.identity
    try:
        configured = chosen_embedder(options.settings())
    except ConfigurationError:
        return False
    return configured is not None and configured.identity == embedder.identity


def _echo(answer: dict[str, Any]) -> None:
    for failure in answer["failures"]:
        name, why = (context.printable(failure[part]) for part in ("document_id", "reason"))
        click.echo(f"failed: {name}: {why}", err=True)
    click.echo(f"{answer['embedded']} chunks embedded with {answer['model']}")
    if answer["missing"]:
        click.echo(f"{answer['missing']} chunks still have no vector; run it again to continue.")
    if answer["dropped"]:
        click.echo(f"{answer['dropped']} vectors of other models removed")
    if answer["kept"]:
        click.echo(
            f"{answer['kept']} is kept: a running process uses it. Restart that process first."
        )

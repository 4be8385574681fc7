"""zibaldone sources: where documents come from, and how each source cuts them into passages."""

from __future__ import annotations

from typing import Any

import click

from zibaldone.cli import context
from zibaldone.limits import (
    CHUNK_MINIMUM_CHARS_DEFAULT,
    CHUNK_OVERLAP_CHARS_DEFAULT,
    CHUNK_SIZE_CHARS_DEFAULT,
)
from zibaldone.model.chunking import CUTS, CutBy

_COLUMNS = ("name", "namespace", "kind", "documents", "passages", "chunking")


@click.group(invoke_without_command=True)
@context.json_option
@click.pass_context
def sources(ctx: click.Context, as_json: bool) -> None:
    """List the sources, or change how one is chunked."""
    if ctx.invoked_subcommand is not None:
        return
    answer = context.run_tool(ctx.obj, "list_sources", {})
    if as_json:
        context.echo_json(answer)
        return
    rows = [_row(source) for source in answer["sources"]]
    context.echo_table([_COLUMNS, *rows], right=frozenset({3, 4}))


@sources.command()
@click.argument("name")
@click.option("--by", type=click.Choice(CUTS), help="By structure, or windows of one size.")
@click.option(
    "--chars",
    "size_chars",
    type=int,
    help=f"Characters of a window; {CHUNK_SIZE_CHARS_DEFAULT} where nothing is said.",
)
@click.option(
    "--overlap",
    "overlap_chars",
    type=int,
    help="What a window repeats of the one before; "
    f"a tenth of --chars ({CHUNK_OVERLAP_CHARS_DEFAULT}).",
)
@click.option(
    "--min",
    "minimum_chars",
    type=int,
    help="A shorter last window joins the one before; "
    f"a fifth of --chars ({CHUNK_MINIMUM_CHARS_DEFAULT}).",
)
@click.option("--namespace", help="Whose source, where several have one of that name.")
@context.json_option
@click.pass_obj
def chunking(
    options: context.Options,
    /,
    name: str,
    by: CutBy | None,
    namespace: str | None,
    as_json: bool,
    **sizes: int | None,
) -> None:
    """Show how the source NAME cuts its documents into passages, or change it.

    A change holds for the next write, and all documents are cut anew while a server may go on
    serving. What is done is kept: the same command goes on after an interruption.
    """
    arguments: dict[str, Any] = {"source": name, "namespace": namespace}
    changes = {"by": by, **sizes}
    if any(value is not None for value in changes.values()):
        with context.opened(options) as session, context.progress_bar("Cutting") as notify:
            answer = session.call("set_source_chunking", {**arguments, **changes}, notify)
    else:
        answer = context.run_tool(options, "source_chunking", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        _echo(answer)


def _row(source: dict[str, Any]) -> tuple[str, ...]:
    kind = source["kind"] if source["enabled"] else f"{source['kind']} (disabled)"
    if source["chunking"] is None:
        how = f"unusable: {source['problem']}"
    else:
        how = _described(source["chunking"], is_cut=source["is_cut"])
    names = (context.printable(part) for part in (source["source"], source["namespace"], kind))
    counts = (str(source["documents"]), str(source["passages"]))
    return (*names, *counts, context.printable(how))


def _described(how: dict[str, Any], *, is_cut: bool) -> str:
    text = f"by {how['by']}"
    if how["by"] == "size":
        text += f", {how['size_chars']} characters"
        text += f", {how['overlap_chars']} repeated, at least {how['minimum_chars']}"
    return text if is_cut else f"{text} (not all documents yet)"


def _echo(answer: dict[str, Any]) -> None:
    name = context.printable(answer["source"])
    click.echo(f"{name}: {_described(answer['chunking'], is_cut=answer['is_cut'])}")
    if "documents" in answer:
        click.echo(
            f"{answer['documents']} documents cut anew, {answer['changed']} changed, "
            f"{answer['new_passages']} passages new"
        )
    elif not answer["is_cut"]:
        click.echo("Set it again to cut the rest.", err=True)

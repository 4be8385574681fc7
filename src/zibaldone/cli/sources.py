"""zibaldone sources: where documents come from, and how each source is chunked.

The commands about databases are in the modules `source_*`.
"""

from __future__ import annotations

from typing import Any

import click

from zibaldone.cli import context, source_commands
from zibaldone.cli.source_add import add
from zibaldone.cli.source_session import opened
from zibaldone.cli.vectors import finish_vectors
from zibaldone.limits import (
    CHUNK_MINIMUM_CHARS_DEFAULT,
    CHUNK_OVERLAP_CHARS_DEFAULT,
    CHUNK_SIZE_CHARS_DEFAULT,
)
from zibaldone.model.chunking import CUTS, CutBy
from zibaldone.model.source import PULLED

_FEWER = ("name", "namespace", "kind", "documents", "chunks", "chunking")
_COLUMNS = (*_FEWER, "last sync")


@click.group(invoke_without_command=True)
@context.json_option
@click.pass_context
def sources(ctx: click.Context, as_json: bool) -> None:
    """List the sources, or add, sync and change them.

    A source is where documents come from: kb holds those that agents write, others hold rows of
    your own databases.
    """
    if ctx.invoked_subcommand is None:
        _list(ctx.obj, as_json=as_json)


@sources.command("list")
@context.json_option
@click.pass_obj
def list_(options: context.Options, /, as_json: bool) -> None:
    """List the sources."""
    _list(options, as_json=as_json)


def _list(options: context.Options, *, as_json: bool) -> None:
    with opened(options) as session:
        answer = session.call("list_sources", {})
    if as_json:
        context.echo_json(answer)
        return
    rows = [_row(source) for source in answer["sources"]]
    columns = _COLUMNS if any(source["kind"] == PULLED for source in answer["sources"]) else _FEWER
    table = [columns, *(row[: len(columns)] for row in rows)]
    context.echo_table(table, right=frozenset({3, 4}))


@sources.command()
@click.argument("name")
@click.option(
    "--by",
    type=click.Choice(CUTS),
    help="Cut by the structure of the text, or into chunks of one size.",
)
@click.option(
    "--chars",
    "size_chars",
    type=int,
    help=f"Characters of a chunk; default {CHUNK_SIZE_CHARS_DEFAULT}.",
)
@click.option(
    "--overlap",
    "overlap_chars",
    type=int,
    help="Characters that a chunk repeats of the one before; "
    f"default a tenth of --chars ({CHUNK_OVERLAP_CHARS_DEFAULT}).",
)
@click.option(
    "--min",
    "minimum_chars",
    type=int,
    help="A shorter last chunk is joined to the one before; "
    f"default a fifth of --chars ({CHUNK_MINIMUM_CHARS_DEFAULT}).",
)
@click.option("--namespace", help="Namespace of the source, if several have one of that name.")
@context.json_option
@click.pass_obj
@context.resumable()
def chunking(
    options: context.Options,
    /,
    name: str,
    by: CutBy | None,
    namespace: str | None,
    as_json: bool,
    **sizes: int | None,
) -> None:
    """Show or change how the documents of the source NAME are chunked.

    A change applies to the next write, and all existing documents are chunked again. A server may
    keep running. After an interruption, the same command continues.
    """
    arguments: dict[str, Any] = {"source": name, "namespace": namespace}
    changes = {"by": by, **sizes}
    if any(value is not None for value in changes.values()):
        with context.opened(options) as session:
            with context.progress_bar("Chunking") as notify:
                answer = session.call("set_source_chunking", {**arguments, **changes}, notify)
            finish_vectors(session)
    else:
        answer = context.run_tool(options, "source_chunking", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        _echo(answer)


def _row(source: dict[str, Any]) -> tuple[str, ...]:
    kind = source["kind"] if source["enabled"] else f"{source['kind']} (disabled)"
    if source["chunking"] is None:
        how = f"invalid: {source['problem']}"
    else:
        how = _in_words(source["chunking"], is_cut=source["is_cut"])
    names = (context.printable(part) for part in (source["source"], source["namespace"], kind))
    counts = (str(source["documents"]), str(source["chunks"]))
    synced = source.get("last_sync", "")
    last_sync = "never" if synced is None else synced[:19] + "Z" if synced else "-"
    return (*names, *counts, context.printable(how), last_sync)


def _in_words(how: dict[str, Any], *, is_cut: bool) -> str:
    text = f"by {how['by']}"
    if how["by"] == "size":
        text += f", {how['size_chars']} characters"
        text += f", overlap {how['overlap_chars']}, at least {how['minimum_chars']}"
    return text if is_cut else f"{text} (not all documents yet)"


def _echo(answer: dict[str, Any]) -> None:
    name = context.printable(answer["source"])
    click.echo(f"{name}: {_in_words(answer['chunking'], is_cut=answer['is_cut'])}")
    if "documents" in answer:
        click.echo(
            f"{answer['documents']} documents chunked again, {answer['changed']} changed, "
            f"{answer['new_chunks']} new chunks"
        )
    elif not answer["is_cut"]:
        click.echo(
            "Not all documents are chunked this way yet; set it again to continue.", err=True
        )


for command in (
    add,
    source_commands.sync,
    source_commands.show,
    source_commands.test,
    source_commands.preview,
    source_commands.disable,
    source_commands.enable,
    source_commands.remove,
):
    sources.add_command(command)

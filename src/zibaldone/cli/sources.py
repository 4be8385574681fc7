"""zibaldone sources: where documents come from, and how each source cuts them into passages."""

from __future__ import annotations

import time
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.errors import Ambiguous, InvalidArgument, NotFound, StorageCorrupt
from zibaldone.index.recut import Recut, change_chunking
from zibaldone.limits import (
    CHUNK_MINIMUM_CHARS_DEFAULT,
    CHUNK_OVERLAP_CHARS_DEFAULT,
    CHUNK_SIZE_CHARS_DEFAULT,
)
from zibaldone.model.chunking import CUTS, Chunking, CutBy
from zibaldone.store.upkeep import Source

_COLUMNS = ("name", "namespace", "kind", "documents", "passages", "chunking")


@click.group(invoke_without_command=True)
@context.json_option
@click.pass_context
def sources(ctx: click.Context, as_json: bool) -> None:
    """List the sources, or change how one is chunked."""
    if ctx.invoked_subcommand is not None:
        return
    with context.opened(ctx.obj) as session:
        found = _all(session)
    if as_json:
        context.echo_json({"sources": [_listed(source) for source in found]})
        return
    rows = [_row(source) for source in found]
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
    given = {part: value for part, value in sizes.items() if value is not None}
    with context.opened(options) as session:
        source = _named(_all(session), name, namespace)
        if by is None and not given:
            answer = _shown(source)
        else:
            answer = _change(session, source, _wanted(source, by, given))
    if as_json:
        context.echo_json(answer)
    else:
        _echo(answer)


def _change(session: context.Session, source: Source, wanted: Chunking) -> dict[str, Any]:
    started_s = time.monotonic()
    with context.progress("Cutting", source.documents) as report:
        done: Recut = session.run(
            change_chunking(session.runtime.store, source.source_id, wanted, report)
        )
    return {
        **_named_as(source),
        "chunking": wanted.as_dict(),
        "is_cut": True,
        "documents": done.documents,
        "changed": done.changed,
        "new_passages": done.chunks,
        "seconds": round(time.monotonic() - started_s, 3),
    }


def _wanted(source: Source, by: CutBy | None, given: dict[str, int]) -> Chunking:
    """What is not said stays; sizes of a source that was not cut by size begin as the defaults."""
    by = by or _usable(source).by
    if by == "structure":
        if given:
            raise InvalidArgument(
                f"{source.name!r} is cut by structure; sizes go with --by size.", field="by"
            )
        return Chunking()
    current = source.chunking
    if current is not None and current.by == "size" and "size_chars" not in given:
        given = {**current.as_dict(), **given}
        del given["by"]
    return Chunking.by_size(**given)


def _all(session: context.Session) -> list[Source]:
    store = session.runtime.store
    return session.run(store.upkeep(lambda work: work.sources.all(), write=False))


def _named(known: list[Source], name: str, namespace: str | None) -> Source:
    found = [
        source for source in known
        if source.name == name and namespace in (None, source.namespace)
    ]  # fmt: skip
    if not found:
        raise NotFound(f"There is no source {name!r}.", source=name)
    if len(found) > 1:
        names = sorted(source.namespace for source in found)
        raise Ambiguous(
            f"Several namespaces have a source {name!r} ({', '.join(names)}): give --namespace.",
            source=name,
            namespaces=names,
        )
    return found[0]


def _usable(source: Source) -> Chunking:
    if source.chunking is None:
        raise StorageCorrupt(
            f"The definition of the source {source.name!r} cannot be used: {source.problem} "
            "--by sets it anew.",
            source=source.name,
        )
    return source.chunking


def _named_as(source: Source) -> dict[str, Any]:
    return {"source": source.name, "namespace": source.namespace}


def _shown(source: Source) -> dict[str, Any]:
    usable = _usable(source)
    return {**_named_as(source), "chunking": usable.as_dict(), "is_cut": source.is_cut}


def _listed(source: Source) -> dict[str, Any]:
    return {
        **_named_as(source),
        "source_id": source.source_id,
        "kind": source.kind,
        "enabled": source.enabled,
        "documents": source.documents,
        "passages": source.chunks,
        "chunking": None if source.chunking is None else source.chunking.as_dict(),
        "is_cut": source.is_cut,
        "problem": source.problem or None,
    }


def _row(source: Source) -> tuple[str, ...]:
    kind = source.kind if source.enabled else f"{source.kind} (disabled)"
    if source.chunking is None:
        how = f"unusable: {source.problem}"
    else:
        how = _described(source.chunking.as_dict(), is_cut=source.is_cut)
    names = (context.printable(part) for part in (source.name, source.namespace, kind))
    return (*names, str(source.documents), str(source.chunks), context.printable(how))


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

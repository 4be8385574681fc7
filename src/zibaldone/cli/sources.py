"""zibaldone sources: where documents come from, and how each source is chunked."""

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

_COLUMNS = ("name", "namespace", "kind", "documents", "chunks", "chunking")


@click.group(invoke_without_command=True)
@context.json_option
@click.pass_context
def sources(ctx: click.Context, as_json: bool) -> None:
    """List the sources, or change how one is chunked."""
    if ctx.invoked_subcommand is not None:
        return
    with context.opened(ctx.obj) as session:
        known = _all(session)
    if as_json:
        context.echo_json({"sources": [_listed(source) for source in known]})
        return
    rows = [_row(source) for source in known]
    context.echo_table([_COLUMNS, *rows], right=frozenset({3, 4}))


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
    given = {part: value for part, value in sizes.items() if value is not None}
    with context.opened(options) as session:
        source = _named(_all(session), name, namespace)
        if by is None and not given:
            answer = _described(source)
        else:
            answer = _change(session, source, _wanted(source, by, given))
    if as_json:
        context.echo_json(answer)
    else:
        _echo(answer)


def _change(session: context.Session, source: Source, wanted: Chunking) -> dict[str, Any]:
    started_s = time.monotonic()
    with context.progress("Chunking", source.documents) as report:
        outcome: Recut = session.run(
            change_chunking(session.runtime.store, source.source_id, wanted, report)
        )
    return {
        **_identified(source),
        "chunking": wanted.as_dict(),
        "is_cut": True,
        "documents": outcome.documents,
        "changed": outcome.changed,
        "new_chunks": outcome.chunks,
        "seconds": round(time.monotonic() - started_s, 3),
    }


def _wanted(source: Source, by: CutBy | None, given: dict[str, int]) -> Chunking:
    """The chunking asked for; sizes that are not given stay as they are, or get their defaults."""
    by = by or _usable(source).by
    if by == "structure":
        if given:
            raise InvalidArgument(
                f"{source.name!r} is cut by structure; to set sizes, add --by size.", field="by"
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
    matching = [
        source for source in known
        if source.name == name and namespace in (None, source.namespace)
    ]  # fmt: skip
    if not matching:
        raise NotFound(f"There is no source {name!r}. 'zibaldone sources' lists them.", source=name)
    if len(matching) > 1:
        names = sorted(source.namespace for source in matching)
        raise Ambiguous(
            f"Several namespaces have a source {name!r}: {', '.join(names)}. Add --namespace.",
            source=name,
            namespaces=names,
        )
    return matching[0]


def _usable(source: Source) -> Chunking:
    if source.chunking is None:
        raise StorageCorrupt(
            f"The definition of the source {source.name!r} is invalid: {source.problem} "
            "Set it again with --by.",
            source=source.name,
        )
    return source.chunking


def _identified(source: Source) -> dict[str, Any]:
    return {"source": source.name, "namespace": source.namespace}


def _described(source: Source) -> dict[str, Any]:
    usable = _usable(source)
    return {**_identified(source), "chunking": usable.as_dict(), "is_cut": source.is_cut}


def _listed(source: Source) -> dict[str, Any]:
    return {
        **_identified(source),
        "source_id": source.source_id,
        "kind": source.kind,
        "enabled": source.enabled,
        "documents": source.documents,
        "chunks": source.chunks,
        "chunking": None if source.chunking is None else source.chunking.as_dict(),
        "is_cut": source.is_cut,
        "problem": source.problem or None,
    }


def _row(source: Source) -> tuple[str, ...]:
    kind = source.kind if source.enabled else f"{source.kind} (disabled)"
    if source.chunking is None:
        how = f"invalid: {source.problem}"
    else:
        how = _in_words(source.chunking.as_dict(), is_cut=source.is_cut)
    names = (context.printable(part) for part in (source.name, source.namespace, kind))
    return (*names, str(source.documents), str(source.chunks), context.printable(how))


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

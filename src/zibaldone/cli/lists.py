"""ls, search: list and find documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from zibaldone.cli import context
from zibaldone.cli.hits import ColorChoice, color_option, echo_hits, echo_note
from zibaldone.cli.vectors import unserved_advice
from zibaldone.errors import InvalidArgument
from zibaldone.find.parse import checked_text
from zibaldone.limits import (
    LIST_LIMIT_DEFAULT,
    LIST_LIMIT_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)

if TYPE_CHECKING:
    from zibaldone.model.document import RecentHead
    from zibaldone.store.port import Reader


@click.command()
@click.argument("prefix", default="")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIST_LIMIT_DEFAULT,
    show_default=True,
    help="Number of documents to list.",
)
@click.option("--all", "show_all", is_flag=True, help="List all.")
@click.option("--cursor", help="Continue from next_cursor of --json.")
@click.option("--long", "is_long", is_flag=True, help="Add revision, title and tags.")
@click.option("--recent", "is_recent", is_flag=True, help="Newest first, with the time.")
@click.option("--since", metavar="DATE", help="Only what was written then or later; newest first.")
@click.option(
    "--deleted",
    "is_deleted",
    is_flag=True,
    help="Deleted documents, the last deleted first; `restore` brings one back.",
)
@context.json_option
@click.pass_obj
def ls(
    options: context.Options,
    prefix: str,
    limit: int,
    show_all: bool,
    cursor: str | None,
    is_long: bool,
    is_recent: bool,
    since: str | None,
    is_deleted: bool,
    as_json: bool,
) -> None:
    """List documents whose path starts with PREFIX.

    Paths are sorted by their UTF-8 bytes; with --recent or --since, by the time of the last write.
    """
    if is_deleted and (cursor or is_recent or since is not None):
        raise click.UsageError("--deleted goes with --limit, --all and --long only.")
    order: dict[str, Any] = {}
    if is_recent or since is not None:
        order = {"sort": "recent", "updated_after": _date(since)}
    count, next_cursor = 0, None
    # Printed with the first page, so that an error is printed alone.
    opening = '{\n  "items": ['
    with context.opened(options) as session:
        most = None if show_all else limit
        found = (
            deleted_pages(session, prefix, most)
            if is_deleted
            else pages(session, prefix, most, cursor, order)
        )
        for page in found:
            if as_json:
                click.echo(opening, nl=False)
                _echo_json_items(page["items"], is_first=count == 0)
                opening = ""
            else:
                _echo_items(page["items"], is_long)
            count += page["count"]
            next_cursor = page.get("next_cursor")
        hint = None if count or is_deleted or as_json else _mistyped(session, prefix)
    if as_json:
        more = context.as_json({"count": count, "next_cursor": next_cursor})
        click.echo("\n  ],\n" + more.removeprefix("{\n"))
    elif next_cursor is not None:
        click.echo(f"Showing the first {count}; use --all to list them all.", err=True)
    elif not count:
        click.echo(hint or _nothing(prefix, is_deleted, since), err=True)


def _mistyped(session: context.Session, prefix: str) -> str | None:
    """That no path has this prefix, with those that are near it."""
    from zibaldone.access.principal import LOCAL
    from zibaldone.keep.nearest import nothing_under
    from zibaldone.text import normalize

    start = normalize.prefix(prefix)
    store = session.runtime.store
    return session.run(store.read(LOCAL.tenant, lambda reader: nothing_under(reader, start)))


def _nothing(prefix: str, is_deleted: bool, since: str | None) -> str:
    """What an empty list means."""
    where = f" under {prefix!r}" if prefix else ""
    if is_deleted:
        return f"There are no deleted documents{where}."
    if since is not None:
        return f"Nothing{where} was written since then."
    return f"There are no documents{where}."


def _date(text: str | None) -> str | None:
    from zibaldone.model.instant import from_iso

    try:
        if text is not None:
            from_iso(text)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"--since {text} is not a date like 2026-01-31 or 2026-01-31T08:00:00Z.", field="since"
        ) from None
    return text


def pages(
    session: context.Session,
    prefix: str,
    limit: int | None,
    cursor: str | None = None,
    order: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[context.Answer]:
    """Pages of the list, until its end or until `limit` items."""
    left = limit
    while left is None or left > 0:
        size = LIST_LIMIT_MAX if left is None else min(left, LIST_LIMIT_MAX)
        arguments: dict[str, Any] = {"prefix": prefix, "limit": size, "cursor": cursor, **order}
        page = session.call("list_documents", arguments)
        yield page
        cursor = page.get("next_cursor")
        if cursor is None:
            return
        if left is not None:
            left -= page["count"]


def deleted_pages(
    session: context.Session, prefix: str, limit: int | None
) -> Iterator[context.Answer]:
    """The same of deleted documents; each has the time when it was deleted."""
    from zibaldone.access.principal import LOCAL
    from zibaldone.model.instant import to_iso
    from zibaldone.text import normalize

    start = normalize.prefix(prefix)
    left, before = limit, None
    while left is None or left > 0:
        size = LIST_LIMIT_MAX if left is None else min(left, LIST_LIMIT_MAX)
        heads = session.run(
            session.runtime.store.read(
                LOCAL.tenant,
                partial(_deleted, prefix=start, before=before, limit=size + 1),
            )
        )
        has_more, heads = len(heads) > size, heads[:size]
        items = [
            {
                "document_id": head.document_id,
                "title": head.title,
                "tags": list(head.tags),
                "revision": head.revision,
                "deleted_at": to_iso(head.updated_at_us),
            }
            for head in heads
        ]
        last = items[-1]["document_id"] if has_more else None
        yield {"items": items, "count": len(items), "next_cursor": last}
        if not has_more:
            return
        before = (heads[-1].updated_at_us, heads[-1].document_id)
        if left is not None:
            left -= len(items)


def _deleted(
    reader: Reader, *, prefix: str, before: tuple[int, str] | None, limit: int
) -> list[RecentHead]:
    return reader.documents.deleted(prefix, before=before, limit=limit)


def _echo_items(items: list[dict[str, Any]], is_long: bool) -> None:
    if not is_long:
        for item in items:
            click.echo(_time(item) + item["document_id"])
        return
    rows = [
        (
            _time(item) + item["document_id"],
            str(item["revision"]),
            context.printable(item["title"]),
            context.printable(", ".join(item["tags"])),
        )
        for item in items
    ]
    context.echo_table(rows, right=frozenset({1}))


def _time(item: dict[str, Any]) -> str:
    """When an item of a list by time was written or deleted, to the second, in UTC."""
    at = item.get("updated_at") or item.get("deleted_at")
    return f"{at[:19]}Z  " if at else ""


def _echo_json_items(items: list[dict[str, Any]], *, is_first: bool) -> None:
    """Write item by item: a list of any length needs no more memory than one page."""
    for number, item in enumerate(items):
        comma = "" if is_first and number == 0 else ","
        text = context.as_json(item).replace("\n", "\n    ")
        click.echo(f"{comma}\n    {text}", nl=False)


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--limit",
    type=click.IntRange(1, SEARCH_LIMIT_MAX),
    default=SEARCH_LIMIT_DEFAULT,
    show_default=True,
    help="Number of results.",
)
@click.option("--prefix", default="", help="Only paths that start with this.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Only documents with this tag (repeatable).",
)
@color_option
@context.json_option
@click.pass_obj
def search(
    options: context.Options,
    query: tuple[str, ...],
    limit: int,
    prefix: str,
    tags: tuple[str, ...],
    color: ColorChoice,
    as_json: bool,
) -> None:
    """Search documents by meaning and by keywords.

    QUERY may contain +"a phrase", title:word, prefix* and -excluded; put -- before it if an
    argument starts with a minus sign.
    """
    text = checked_text(" ".join(query))  # refused before a model is loaded for it
    arguments = {"query": text, "limit": limit, "prefix": prefix, "tags": list(tags)}
    with context.opened(options) as session:
        session.await_model()
        answer = session.call("search_knowledge", arguments)
        advice = unserved_advice(session) if "note" in answer and not as_json else ""
    if as_json:
        context.echo_json(answer)
        return
    echo_hits(answer["results"], color)
    if not answer["results"]:
        click.echo("Nothing found.", err=True)
    if "note" in answer:
        echo_note(f"Note: {context.printable(answer['note'])}.{advice}")

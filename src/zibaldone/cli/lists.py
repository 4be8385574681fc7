"""ls, search: list and find documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.cli.hits import ColorChoice, color_option, echo_hits, echo_note
from zibaldone.cli.vectors import unserved_advice
from zibaldone.find.parse import checked_text
from zibaldone.limits import (
    LIST_LIMIT_DEFAULT,
    LIST_LIMIT_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)

_MODEL_LOADS_SECONDS_MAX = 10.0


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
    as_json: bool,
) -> None:
    """List documents whose path starts with PREFIX.

    Paths are sorted by their UTF-8 bytes; with --recent or --since, by the time of the last write.
    """
    order: dict[str, Any] = {}
    if is_recent or since is not None:
        order = {"sort": "recent", "updated_after": since}
    count, next_cursor = 0, None
    # Printed with the first page, so that an error is printed alone.
    opening = '{\n  "items": ['
    with context.opened(options) as session:
        for page in pages(session, prefix, None if show_all else limit, cursor, order):
            if as_json:
                click.echo(opening, nl=False)
                _echo_json_items(page["items"], is_first=count == 0)
                opening = ""
            else:
                _echo_items(page["items"], is_long)
            count += page["count"]
            next_cursor = page.get("next_cursor")
    if as_json:
        more = context.as_json({"count": count, "next_cursor": next_cursor})
        click.echo("\n  ],\n" + more.removeprefix("{\n"))
    elif next_cursor is not None:
        click.echo(f"Showing the first {count}; use --all to list them all.", err=True)


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
    """When an item of a list by time was written, to the second, in UTC."""
    return f"{item['updated_at'][:19]}Z  " if "updated_at" in item else ""


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
        # Wait for the model, which a server would have loaded already.
        session.run(session.runtime.query_vectors.ready(_MODEL_LOADS_SECONDS_MAX))
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

"""ls, search: which documents there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from zibaldone.cli import context
from zibaldone.find.parse import checked_text
from zibaldone.limits import (
    LIST_LIMIT_DEFAULT,
    LIST_LIMIT_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
)
from zibaldone.tools.documents import list_documents, search_knowledge
from zibaldone.tools.spec import Answer

_MODEL_LOADS_SECONDS_MAX = 10.0


@click.command()
@click.argument("prefix", default="")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIST_LIMIT_DEFAULT,
    show_default=True,
    help="How many to show.",
)
@click.option("--all", "show_all", is_flag=True, help="Show all there are.")
@click.option("--cursor", help="Go on where --json's next_cursor says.")
@click.option("--long", "is_long", is_flag=True, help="With revision, title and tags.")
@context.json_option
@click.pass_obj
def ls(
    options: context.Options,
    prefix: str,
    limit: int,
    show_all: bool,
    cursor: str | None,
    is_long: bool,
    as_json: bool,
) -> None:
    """List documents whose path starts with PREFIX, in byte order."""
    shown_count, next_cursor = 0, None
    # Only once the first page is here: an error is to stand alone.
    opening = '{\n  "items": ['
    with context.opened(options) as session:
        for page in pages(session, prefix, None if show_all else limit, cursor):
            if as_json:
                click.echo(opening, nl=False)
                _echo_json_items(page["items"], is_first=shown_count == 0)
                opening = ""
            else:
                _echo_items(page["items"], is_long)
            shown_count += page["count"]
            next_cursor = page.get("next_cursor")
    if as_json:
        more = context.as_json({"count": shown_count, "next_cursor": next_cursor})
        click.echo("\n  ],\n" + more.removeprefix("{\n"))
    elif next_cursor is not None:
        click.echo(f"There are more than these {shown_count}: --all shows them.", err=True)


def pages(
    session: context.Session, prefix: str, limit: int | None, cursor: str | None = None
) -> Iterator[Answer]:
    """Pages of the list until there is no more, or `limit` items were given."""
    left = limit
    while left is None or left > 0:
        size = LIST_LIMIT_MAX if left is None else min(left, LIST_LIMIT_MAX)
        arguments: dict[str, Any] = {"prefix": prefix, "limit": size, "cursor": cursor}
        page = session.call(list_documents.TOOL, arguments)
        yield page
        cursor = page.get("next_cursor")
        if cursor is None:
            return
        if left is not None:
            left -= page["count"]


def _echo_items(items: list[dict[str, Any]], is_long: bool) -> None:
    if not is_long:
        for item in items:
            click.echo(item["document_id"])
        return
    rows = [
        (
            item["document_id"],
            str(item["revision"]),
            context.printable(item["title"]),
            context.printable(", ".join(item["tags"])),
        )
        for item in items
    ]
    context.echo_table(rows, right=frozenset({1}))


def _echo_json_items(items: list[dict[str, Any]], *, is_first: bool) -> None:
    """Item by item, so that a list of any length needs no more memory than a page."""
    for number, item in enumerate(items):
        comma = "" if is_first and number == 0 else ","
        shown = context.as_json(item).replace("\n", "\n    ")
        click.echo(f"{comma}\n    {shown}", nl=False)


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--limit",
    type=click.IntRange(1, SEARCH_LIMIT_MAX),
    default=SEARCH_LIMIT_DEFAULT,
    show_default=True,
    help="How many hits to show.",
)
@click.option("--prefix", default="", help="Only documents whose path starts so.")
@click.option("--tag", "tags", multiple=True, help="Only with this tag; give it once for each.")
@context.json_option
@click.pass_obj
def search(
    options: context.Options,
    query: tuple[str, ...],
    limit: int,
    prefix: str,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find documents by what QUERY means and by its words.

    "a phrase", title:word and prefix* work as well; put -- before a QUERY that leaves out -words.
    """
    text = checked_text(" ".join(query))  # before a model is loaded for it
    arguments = {"query": text, "limit": limit, "prefix": prefix, "tags": list(tags)}
    with context.opened(options) as session:
        # A model that is loaded for this one search is worth the wait; a server has it loaded.
        session.run(session.runtime.query_vectors.ready(_MODEL_LOADS_SECONDS_MAX))
        answer = session.call(search_knowledge.TOOL, arguments)
    if as_json:
        context.echo_json(answer)
        return
    for number, hit in enumerate(answer["results"], 1):
        title = f"  {context.printable(hit['title'])}" if hit["title"] else ""
        click.echo(f"{number}. {context.printable(hit['document_id'])}{title}")
        for passage in hit["passages"]:
            click.echo(f"   {context.printable(passage['snippet'])}")
    if not answer["results"]:
        click.echo("Nothing found.", err=True)
    if "note" in answer:
        click.echo(f"Note: {context.printable(answer['note'])}.", err=True)

"""zibaldone memory: look after what agents remember."""

from __future__ import annotations

from typing import Any

import click

from zibaldone.cli import context

_EXPLAINED = {
    "duplicates": "the same text again",
    "near_duplicates": "nearly the same text",
    "contradicted": "facts that a later one ended",
    "stale": "facts that hold since long ago, not said again",
    "secrets": "what looks like a key or a password",
    "never_recalled": "not found by their own words",
}


@click.group()
def memory() -> None:
    """Look after what agents remember."""


@memory.command()
@click.option("--group", "groups", multiple=True, help="Only this group; may be repeated.")
@click.option(
    "--stale-days",
    type=click.IntRange(1, 100_000),
    default=365,
    show_default=True,
    help="How old a fact that can change has to be to be listed.",
)
@context.json_option
@click.pass_obj
def audit(
    options: context.Options, /, groups: tuple[str, ...], stale_days: int, as_json: bool
) -> None:
    """Find duplicates, contradictions, secrets, and what is never found."""
    arguments: dict[str, Any] = {"stale_days": stale_days}
    if groups:
        arguments["group_ids"] = list(groups)
    answer = context.run_tool(options, "audit_memory", arguments)
    if as_json:
        context.echo_json(answer)
        return
    episodes, of = answer["episodes"], len(answer["groups"])
    click.echo(
        f"{episodes:,} {'episode' if episodes == 1 else 'episodes'} in "
        f"{of} {'group' if of == 1 else 'groups'}"
    )
    if answer["truncated"]:
        click.echo("There are more; only the latest were looked at.", err=True)
    counts = answer["counts"]
    rows = [(name, f"{counts[name]:,}", why) for name, why in _EXPLAINED.items()]
    context.echo_table([("", "count", ""), *rows], right=frozenset({1}))
    for name in _EXPLAINED:
        for one in answer[name]:
            click.echo(f"{name}: {context.printable(_line(one))}")


def _line(found: Any) -> str:
    """One thing that was found, without the text of a secret."""
    match found:
        case str():
            return found
        case list():
            return " = ".join(found)
        case {"one": one, "two": two, "share": share}:
            return f"{one} ~ {two} ({share:.0%})"
        case {"document_id": document_id, "kinds": kinds}:
            return f"{document_id} ({', '.join(kinds)})"
        case {"document_id": document_id, "fact": fact, **more}:
            ended = f" -> {more['replaced_by']}" if more.get("replaced_by") else ""
            return f"{document_id}: {fact}{ended}"
    return context.as_json_line(found)

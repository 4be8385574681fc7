"""zibaldone usage: what namespaces hold."""

from __future__ import annotations

import click

from zibaldone.cli import context

_COLUMNS = ("documents", "revisions", "bytes")


@click.command()
@context.json_option
@click.pass_obj
def usage(options: context.Options, /, as_json: bool) -> None:
    """Show how much each namespace holds, and the quotas."""
    answer = context.run_tool(options, "show_usage", {})
    if as_json:
        context.echo_json(answer)
        return
    quotas = [
        "-" if answer["quotas"][name] is None else f"{answer['quotas'][name]:,}"
        for name in _COLUMNS
    ]
    rows = [
        ("namespace", *_COLUMNS),
        *(
            (held["namespace"], *(f"{held[name]:,}" for name in _COLUMNS))
            for held in answer["namespaces"]
        ),
        ("(quota of each)", *quotas),
    ]
    context.echo_table(rows, right=frozenset({1, 2, 3}))

"""Every command of the command line, found by walking its tree."""

from __future__ import annotations

from collections.abc import Iterator

import click

from zibaldone.cli.main import commands


def every_command() -> Iterator[tuple[tuple[str, ...], click.Context]]:
    """The words of each command and group, and a context to ask it for help."""
    yield from _below((), click.Context(commands, info_name="zibaldone", max_content_width=80))


def _below(
    words: tuple[str, ...], ctx: click.Context
) -> Iterator[tuple[tuple[str, ...], click.Context]]:
    yield words, ctx
    if not isinstance(ctx.command, click.Group):
        return
    for name in ctx.command.list_commands(ctx):
        inner = ctx.command.get_command(ctx, name)
        assert inner is not None
        yield from _below((*words, name), click.Context(inner, info_name=name, parent=ctx))


def leaves() -> list[tuple[str, ...]]:
    """The commands that do something: no groups."""
    return [words for words, ctx in every_command() if not isinstance(ctx.command, click.Group)]

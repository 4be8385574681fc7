"""A command group that imports a command's module when the command is used.

`--version` and `--help` import no command: the table has the summaries that `--help` lists.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click
from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class LazyCommand:
    name: str
    module: str
    """Under `zibaldone.cli`."""
    attribute: str
    """The click command in that module."""
    summary: str
    """What `--help` of the group says about it; the first sentence of the command's own help."""

    def load(self) -> click.Command:
        module = importlib.import_module(f"zibaldone.cli.{self.module}")
        command: click.Command = getattr(module, self.attribute)
        _add_json(command)
        return command


def _add_json(command: click.Command) -> None:
    """Every command takes --json, also one that prints nothing but errors."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _add_json(inner)
    elif not any("--json" in option.opts for option in command.params):
        command.params.append(
            click.Option(["--json"], is_flag=True, expose_value=False, help="Print errors as JSON.")
        )


class LazyGroup(click.Group):
    def __init__(
        self, *args: Any, lazy_commands: Mapping[str, Sequence[LazyCommand]], **options: Any
    ) -> None:
        """`lazy_commands`: by what they are for, in the order in which `--help` lists them."""
        super().__init__(*args, **options)
        self._by_purpose = lazy_commands
        self._by_name = {
            command.name: command for commands in lazy_commands.values() for command in commands
        }

    def summaries(self) -> dict[str, str]:
        return {name: command.summary for name, command in sorted(self._by_name.items())}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self._by_name.get(cmd_name)
        return None if command is None else command.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; it would only suggest commands that are loaded."""
        is_word = not (args[0].startswith("-") or ctx.resilient_parsing)
        if is_word and args[0] not in self._by_name:
            near = get_close_matches(args[0], self._by_name)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click does it, from the summaries: completion must be quick."""
        items = [
            CompletionItem(name, help=summary)
            for name, summary in self.summaries().items()
            if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, from the summaries instead of the commands."""
        width = max(map(len, self._by_name))
        chars_max = formatter.width - 6 - width
        for purpose, commands in self._by_purpose.items():
            rows = [
                (
                    command.name.ljust(width),  # the columns of all sections begin alike
                    click.Command(command.name, help=command.summary).get_short_help_str(chars_max),
                )
                for command in commands
            ]
            with formatter.section(purpose):
                formatter.write_dl(rows)

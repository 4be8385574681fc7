"""zibaldone import: the words after it are files or folders, unless the first names a source."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from zibaldone.cli.import_agent_data import import_agent_data
from zibaldone.cli.import_folder import import_folder

_PATH = import_folder.name or ""


class ImportGroup(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*ctx.help_option_names, import_agent_data.name):
            args = [_PATH, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Also those for PATH, which would be listed only after one."""
        inner = click.Context(import_folder, info_name=_PATH, parent=ctx)
        options = (each for each in import_folder.params if isinstance(each, click.Option))
        records = (option.get_help_record(inner) for option in options)
        with formatter.section("Options for PATH"):
            formatter.write_dl([record for record in records if record is not None])
        super().format_options(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """A file or folder, which the shell completes, or the other word."""
        word = import_agent_data.name or ""
        others = [CompletionItem(word)] if word.startswith(incomplete) else []
        return [CompletionItem(incomplete, type="file"), *others]


@click.group("import", cls=ImportGroup)
def import_group() -> None:
    """Import files, folders, or another knowledge base.

    \b
    zibaldone import PATH...              files, or the files of folders
    zibaldone import agent-data URL|FILE  an AgentData knowledge base

    A folder that is really called agent-data is written ./agent-data.
    """


import_group.add_command(import_folder)
import_group.add_command(import_agent_data)

"""The command tree, and what the exit codes mean.

0  done                      4  not found
1  failed                    5  conflict (exists, changed meanwhile, ambiguous)
2  wrong usage or setting    6  not allowed
3  wrong input               7  the store cannot be used (locked, full, read-only, damaged)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import orjson

import zibaldone
from zibaldone.cli import context
from zibaldone.cli.call import call
from zibaldone.cli.doctor import doctor
from zibaldone.cli.documents import get, patch, put, rm
from zibaldone.cli.exchange import import_group
from zibaldone.cli.exchange_export import export
from zibaldone.cli.index import index
from zibaldone.cli.keys import key
from zibaldone.cli.lists import ls, search
from zibaldone.cli.reindex import reindex
from zibaldone.cli.revisions import history, restore
from zibaldone.cli.serve import serve
from zibaldone.cli.sources import sources
from zibaldone.cli.stdio import stdio
from zibaldone.errors import ZibaldoneError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(zibaldone.__version__, prog_name="zibaldone")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the database.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (zibaldone.toml).")
@click.pass_context
def commands(ctx: click.Context, data: Path | None, config: Path | None) -> None:
    """Zibaldone: keep, find and share what agents know."""
    ctx.obj = context.Options(data=data, config=config)


for command in (
    serve,
    stdio,
    key,
    put,
    get,
    ls,
    patch,
    rm,
    history,
    restore,
    search,
    import_group,
    export,
    index,
    reindex,
    sources,
    call,
    doctor,
):
    commands.add_command(command)


def main(arguments: list[str] | None = None) -> Any:
    """Run; every failure is one plain line (or one JSON object with --json) and an exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = commands.main(args=given, prog_name="zibaldone", standalone_mode=False)
    except ZibaldoneError as error:
        sys.exit(_report(error, as_json="--json" in given))
    except click.exceptions.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        # The reader of a pipe (`| head`) has gone: nothing is left to say.
        sys.stderr.close()
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: ZibaldoneError, *, as_json: bool) -> int:
    if as_json:
        click.echo(orjson.dumps({"error": error.as_dict()}, default=str).decode())
    else:
        context.echo_error(error)
    return context.exit_code(error)

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

import commonplace
from commonplace.cli import context
from commonplace.cli.call import call
from commonplace.cli.doctor import doctor
from commonplace.cli.documents import get, patch, put, rm
from commonplace.cli.exchange import import_group
from commonplace.cli.exchange_export import export
from commonplace.cli.index import index
from commonplace.cli.keys import key
from commonplace.cli.lists import ls, search
from commonplace.cli.reindex import reindex
from commonplace.cli.revisions import history, restore
from commonplace.cli.serve import serve
from commonplace.cli.sources import sources
from commonplace.cli.stdio import stdio
from commonplace.errors import CommonplaceError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(commonplace.__version__, prog_name="commonplace")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the database.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (commonplace.toml).")
@click.pass_context
def commands(ctx: click.Context, data: Path | None, config: Path | None) -> None:
    """Commonplace: keep, find and share what agents know."""
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
        code = commands.main(args=given, prog_name="commonplace", standalone_mode=False)
    except CommonplaceError as error:
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


def _report(error: CommonplaceError, *, as_json: bool) -> int:
    if as_json:
        click.echo(orjson.dumps({"error": error.as_dict()}, default=str).decode())
    else:
        context.echo_error(error)
    return context.exit_code(error)

"""put, get, patch, rm: one document at a time."""

from __future__ import annotations

import re
from typing import Any

import click

from zibaldone.cli import context, texts
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import REVISION_MAX
from zibaldone.tools.documents import (
    delete_document,
    get_document_for_rewrite,
    history,
    patch_document,
    update_document,
    upload_document,
)
from zibaldone.tools.spec import Answer

_LINES = re.compile(r"(\d*)(-?)(\d*)", re.ASCII)

revision_type = click.IntRange(0, REVISION_MAX)
if_revision_option = click.option(
    "--if-revision",
    type=revision_type,
    metavar="N",
    help="Refuse (exit code 5) unless the document is at revision N.",
)


def echo_written(answer: Answer, as_json: bool) -> None:
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{answer['status']} {answer['id']} (revision {answer['revision']})")


@click.command()
@click.argument("path")
@click.argument("file", default=texts.STANDARD_INPUT)
@click.option("--title", help="One line that says what it is about.")
@click.option("--tag", "tags", multiple=True, help="A tag; give the option once for each.")
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata; VALUE is JSON if it can be read as such, else text. null removes a key.",
)
@click.option("--mime", help="Kind of text; default text/markdown.")
@click.option("--upsert", is_flag=True, help="Overwrite a document that exists.")
@if_revision_option
@context.json_option
@click.pass_obj
def put(
    options: context.Options,
    /,
    path: str,
    file: str,
    meta: tuple[str, ...],
    upsert: bool,
    if_revision: int | None,
    as_json: bool,
    **labels: Any,
) -> None:
    """Keep a text at PATH: the content of FILE, or of standard input.

    A document that is there already is left alone (exit code 5) unless --upsert or --if-revision
    is given.
    """
    bytes_max = options.settings().limits.document_body_bytes_max
    given = {name: value for name, value in labels.items() if value is not None}
    given["tags"] = list(given["tags"])
    if not given["tags"]:
        del given["tags"]
    if meta:
        given["metadata"] = texts.metadata(meta)
    arguments = {"path": path, "content": texts.read_text(file, bytes_max), **given}
    if if_revision is None:
        answer = context.run_tool(options, upload_document.TOOL, {**arguments, "upsert": upsert})
    else:
        arguments["last_known_revision"] = if_revision
        answer = context.run_tool(options, update_document.TOOL, arguments)
    echo_written(answer, as_json)


@click.command()
@click.argument("path")
@click.option("--lines", metavar="A-B", help="Only these lines: 5-10, 5-, -10 or 5.")
@click.option("--revision", type=revision_type, metavar="N", help="As it was at revision N.")
@context.json_option
@click.pass_obj
def get(
    options: context.Options, path: str, lines: str | None, revision: int | None, as_json: bool
) -> None:
    """Print the document at PATH, exactly as it is kept."""
    wanted = None if lines is None else _line_range(lines)
    if revision is None:
        answer = context.run_tool(options, get_document_for_rewrite.TOOL, {"path": path})
    else:
        answer = context.run_tool(options, history.REVISION, {"path": path, "revision": revision})
    if wanted is not None:
        answer["content"] = _part(answer["content"], *wanted)
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(answer["content"].encode(), nl=False)


def _line_range(text: str) -> tuple[int, int | None]:
    match = _LINES.fullmatch(text)
    first, dash, last = match.groups() if match else ("", "", "")
    start = int(first or 1)
    end = int(last) if last else (None if dash else start)
    if not (first or last) or start < 1 or (end is not None and end < start):
        raise click.BadParameter(f"{text!r} is not like 5-10, 5-, -10 or 5.", param_hint="--lines")
    return start, end


def _part(body: str, first: int, last: int | None) -> str:
    lines = body.split("\n")
    end = len(lines) if last is None else last
    part = lines[first - 1 : end]
    return "\n".join(part) + ("\n" if part and end < len(lines) else "")


@click.command()
@click.argument("path")
@click.option("--old", metavar="TEXT", help="The passage, character for character.")
@click.option("--new", metavar="TEXT", help="What takes its place; '' removes the passage.")
@click.option("--old-file", metavar="FILE", help="The passage is the content of a file.")
@click.option("--new-file", metavar="FILE", help="Its replacement is the content of a file.")
@click.option("--all", "replace_all", is_flag=True, help="Every place, not only a single one.")
@click.option(
    "--edits",
    metavar="FILE",
    help='A JSON list of {"old_str", "new_str", "replace_all"}: all are made, or none.',
)
@if_revision_option
@context.json_option
@click.pass_obj
def patch(
    options: context.Options,
    path: str,
    old: str | None,
    new: str | None,
    old_file: str | None,
    new_file: str | None,
    replace_all: bool,
    edits: str | None,
    if_revision: int | None,
    as_json: bool,
) -> None:
    """Replace a passage of the document at PATH."""
    bytes_max = options.settings().limits.request_body_bytes_max
    arguments: dict[str, Any] = {"path": path, "last_known_revision": if_revision}
    if edits is not None:
        if replace_all or any(one is not None for one in (old, new, old_file, new_file)):
            raise click.UsageError("Give --edits, or --old and --new, not both.")
        arguments["replacements"] = texts.read_json(edits, bytes_max)
    else:
        arguments["old_str"] = _passage("old", old, old_file, bytes_max)
        arguments["new_str"] = _passage("new", new, new_file, bytes_max)
        arguments["replace_all"] = replace_all
    answer = context.run_tool(options, patch_document.TOOL, arguments)
    if as_json:
        context.echo_json(answer)
    else:
        places = "1 place" if answer["replaced"] == 1 else f"{answer['replaced']} places"
        click.echo(f"patched {answer['id']} in {places} (revision {answer['revision']})")


def _passage(name: str, text: str | None, file: str | None, bytes_max: int) -> str:
    if (text is None) == (file is None):
        raise click.UsageError(f"Give --{name} or --{name}-file, one of them (or --edits).")
    return text if text is not None else texts.read_text(file or "", bytes_max)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@if_revision_option
@context.json_option
@click.pass_context
def rm(ctx: click.Context, paths: tuple[str, ...], if_revision: int | None, as_json: bool) -> None:
    """Delete the documents at PATH...; `restore` brings one back."""
    if if_revision is not None and len(paths) > 1:
        raise click.UsageError("--if-revision is for one document.")
    answers: list[Answer] = []
    codes: list[int] = []
    with context.opened(ctx.obj) as session:
        for path in paths:
            arguments = {"path": path, "last_known_revision": if_revision}
            try:
                answers.append(session.call(delete_document.TOOL, arguments))
            except ZibaldoneError as error:
                if len(paths) == 1:
                    raise
                codes.append(context.exit_code(error))
                answers.append({"id": path, "status": "error", "error": error.as_dict()})
                if not as_json:
                    context.echo_error(error, path)
                continue
            if not as_json:
                echo_written(answers[-1], as_json)
    if as_json:
        context.echo_json(answers[0] if len(paths) == 1 else {"items": answers})
    if codes:
        ctx.exit(codes[0])

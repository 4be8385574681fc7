"""put, get, patch, rm: one document at a time."""

from __future__ import annotations

import re
from typing import Any

import click

from zibaldone.cli import context, texts
from zibaldone.errors import Conflict, ZibaldoneError
from zibaldone.limits import REVISION_MAX

_LINES = re.compile(r"(\d*)(-?)(\d*)", re.ASCII)

revision_type = click.IntRange(0, REVISION_MAX)
if_revision_option = click.option(
    "--if-revision",
    type=revision_type,
    metavar="N",
    help="Fail (exit code 5) unless the document is at revision N.",
)


def echo_written(answer: context.Answer, as_json: bool) -> None:
    if as_json:
        context.echo_json(answer)
    else:
        click.echo(f"{answer['status']} {answer['id']} (revision {answer['revision']})")


@click.command()
@click.argument("path")
@click.argument("file", default=texts.STANDARD_INPUT)
@click.option("--title", help="Title, one line.")
@click.option("--tag", "tags", multiple=True, help="Tag (repeatable).")
@click.option(
    "--meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata; VALUE is parsed as JSON, or else kept as text. null removes the key.",
)
@click.option("--mime", help="MIME type; default text/markdown.")
@click.option("--upsert", is_flag=True, help="Overwrite an existing document.")
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
    """Store FILE, or standard input, as the document at PATH.

    An existing document is not overwritten (exit code 5) without --upsert or --if-revision.
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
        try:
            answer = context.run_writing_tool(
                options, "upload_document", {**arguments, "upsert": upsert}, if_missing="create"
            )
        except Conflict as exists:
            raise Conflict(f"{exists.message} --upsert overwrites it.", **exists.details) from None
    else:
        arguments["last_known_revision"] = if_revision
        answer = context.run_writing_tool(options, "update_document", arguments)
    echo_written(answer, as_json)


@click.command()
@click.argument("path")
@click.option("--lines", metavar="A-B", help="Only these lines: 5-10, 5-, -10 or 5.")
@click.option("--revision", type=revision_type, metavar="N", help="The document as of revision N.")
@context.json_option
@click.pass_obj
def get(
    options: context.Options, path: str, lines: str | None, revision: int | None, as_json: bool
) -> None:
    """Print the document at PATH, byte for byte."""
    wanted = None if lines is None else _line_range(lines)
    if revision is None:
        answer = context.run_tool(options, "get_document_for_rewrite", {"path": path})
    else:
        answer = context.run_tool(
            options, "document_revision", {"path": path, "revision": revision}
        )
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
@click.option("--old", metavar="TEXT", help="Text to replace; must match exactly.")
@click.option("--new", metavar="TEXT", help="Text to put in its place; '' removes it.")
@click.option("--old-file", metavar="FILE", help="Read the text to replace from FILE.")
@click.option("--new-file", metavar="FILE", help="Read the new text from FILE.")
@click.option(
    "--all",
    "replace_all",
    is_flag=True,
    help="Replace every occurrence; without it there must be only one.",
)
@click.option(
    "--edits",
    metavar="FILE",
    help='Read a JSON list of {"old_str", "new_str", "replace_all"}; all apply, or none.',
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
    """Replace text in the document at PATH."""
    bytes_max = options.settings().limits.request_body_bytes_max
    arguments: dict[str, Any] = {"path": path, "last_known_revision": if_revision}
    if edits is not None:
        if replace_all or any(option is not None for option in (old, new, old_file, new_file)):
            raise click.UsageError("Give --edits, or --old and --new, not both.")
        arguments["replacements"] = texts.read_json(edits, bytes_max)
    else:
        arguments["old_str"] = _text("old", old, old_file, bytes_max)
        arguments["new_str"] = _text("new", new, new_file, bytes_max)
        arguments["replace_all"] = replace_all
    answer = context.run_writing_tool(options, "patch_document", arguments)
    if as_json:
        context.echo_json(answer)
    else:
        places = "1 place" if answer["replaced"] == 1 else f"{answer['replaced']} places"
        click.echo(f"patched {answer['id']} in {places} (revision {answer['revision']})")


def _text(name: str, text: str | None, file: str | None, bytes_max: int) -> str:
    if (text is None) == (file is None):
        raise click.UsageError(f"Give --{name} or --{name}-file (exactly one), or --edits.")
    return text if text is not None else texts.read_text(file or "", bytes_max)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@if_revision_option
@context.json_option
@click.pass_context
def rm(ctx: click.Context, paths: tuple[str, ...], if_revision: int | None, as_json: bool) -> None:
    """Delete documents; their history is kept.

    `zibaldone restore` brings one back.
    """
    if if_revision is not None and len(paths) > 1:
        raise click.UsageError("--if-revision works with one PATH only.")
    answers: list[context.Answer] = []
    codes: list[int] = []
    with context.opened(ctx.obj) as session:
        for path in paths:
            arguments = {"path": path, "last_known_revision": if_revision}
            try:
                answers.append(session.call("delete_document", arguments))
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

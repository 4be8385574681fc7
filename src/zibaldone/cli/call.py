"""zibaldone call: any tool by name, with its arguments as JSON."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click
import orjson

from zibaldone.cli import context, texts
from zibaldone.errors import InvalidArgument

if TYPE_CHECKING:
    from zibaldone.tools.spec import AnyTool


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.pass_obj
def call(options: context.Options, /, tool: str, arguments: str) -> None:
    """Call TOOL with ARGUMENTS and print its answer as JSON.

    ARGUMENTS is a JSON object; '-' reads it from standard input. For tools that have no command
    of their own, such as rag.search_hybrid.
    """
    found = _tool(options, tool)
    bytes_max = options.settings().limits.request_body_bytes_max
    given = texts.read_text("-", bytes_max) if arguments == "-" else arguments
    try:
        values = orjson.loads(given)
    except orjson.JSONDecodeError as problem:
        raise InvalidArgument(f"ARGUMENTS is not JSON: {problem}", field="arguments") from None
    if not isinstance(values, dict):
        raise InvalidArgument("ARGUMENTS must be a JSON object.", field="arguments")
    if found.effect == "write":
        answer = context.run_writing_tool(options, found.name, values, if_missing="create")
    else:
        with context.opened(options) as session:
            if "query" in values:
                session.await_model()
            answer = session.call(found.name, values)
    context.echo_json(answer)


def _tool(options: context.Options, name: str) -> AnyTool:
    """The tool of this name; rag_search_fts means rag.search_fts, as /mcp-all lists it."""
    from zibaldone.wiring.catalogue import build_catalogue

    catalogue = build_catalogue(options.settings())
    tool = catalogue.find(name)
    if tool is not None:
        return tool
    near = difflib.get_close_matches(name, catalogue.by_name, n=1)
    names = ", ".join(sorted(catalogue.by_name))
    hint = f" Did you mean {near[0]!r}?" if near else f" There are {names}."
    raise InvalidArgument(f"There is no tool {name!r}.{hint}", field="tool")

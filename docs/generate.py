"""Write docs/reference/ from the code; `--check` fails when what is written there is not what is.

python -m docs.generate [--check]
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from zibaldone import errors, limits, settings
from zibaldone.cli.main import commands
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.schema import input_schema, result_schema
from zibaldone.tools.spec import AnyTool
from zibaldone.wiring.catalogue import build_catalogue

REFERENCE = Path(__file__).parent / "reference"
_MADE = "<!-- Made by `make docs`; edit the code instead. -->\n\n"


def tools_page(catalogue: Catalogue | None = None) -> str:
    if catalogue is None:
        catalogue = build_catalogue(settings.load({}, environment={}))
    head = (
        "# Tools\n\nEvery tool, over MCP, REST and the command line alike. "
        "Arguments in bold are required; keys of an answer in brackets are not always there.\n"
    )
    return "\n".join([head, *map(_tool_section, catalogue.offered)])


def _tool_section(tool: AnyTool) -> str:
    schema = input_schema(tool)
    required = set(schema.get("required", ()))
    rows = [
        f"| {f'**{name}**' if name in required else name} | {_type(field)} | "
        f"{_bounds(field)} | {_cell(field.get('description', ''))} |"
        for name, field in schema["properties"].items()
    ]
    table = "\n".join(
        ["| argument | type | bounds, default | meaning |", "|---|---|---|---|", *rows]
    )
    where = " On the command line only." if tool.is_local else ""
    return (
        f"## {tool.name}\n\n{tool.description} Effect: {tool.effect}.{where}\n\n{table}\n\n"
        f"Answer: {_answer(tool)}.\n"
    )


def _answer(tool: AnyTool) -> str:
    """The keys of an answer; those that are not always there in brackets."""
    schema = result_schema(tool)
    required = set(schema.get("required", ()))
    keys = (f"`{name}`" if name in required else f"[`{name}`]" for name in schema["properties"])
    return ", ".join(keys) or "none yet"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"array of {_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _bounds(field: dict[str, Any]) -> str:
    words = {
        "minimum": "from",
        "maximum": "to",
        "minItems": "at least",
        "maxItems": "at most",
        "maxLength": "up to",
        "default": "default",
    }
    return ", ".join(f"{word} {_cell(field[key])}" for key, word in words.items() if key in field)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def settings_page() -> str:
    head = (
        "# Settings\n\nA flag wins over the environment, the environment over `zibaldone.toml` "
        "(in the current folder, then in the user's configuration folder; "
        "`--config` or `ZIBALDONE_CONFIG` names another). An unknown name is an error.\n"
    )
    lines = [
        head,
        "| in the file | in the environment | default | meaning |",
        "|---|---|---|---|",
    ]
    for setting in settings.SETTINGS:
        default = "(by platform)" if setting.name == "data" else f"`{_as_code(setting.default)}`"
        lines.append(
            f"| `{setting.name}` | `{settings.ENV_PREFIX}{setting.name.upper()}` | {default} "
            f"| {_cell(setting.help)} |"
        )
    return "\n".join(lines) + "\n"


def _as_code(default: Any) -> str:
    return "[]" if default == () else str(default)


def _number(value: Any) -> str:
    return "off" if value is None else f"{value:,}"


def limits_page() -> str:
    tree = ast.parse(inspect.getsource(limits))
    (settable,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    defaults = {field.name: field.default for field in dataclasses.fields(limits.Limits)}
    head = "| bound | value | why |\n|---|---|---|\n"
    changeable = "".join(
        f"| `{name}` | {_number(defaults[name])} | {_cell(why)} |\n"
        for name, why in _documented(settable.body)
    )
    fixed = "".join(
        f"| `{name}` | {getattr(limits, name):,} | {_cell(why)} |\n"
        for name, why in _documented(tree.body)
    )
    return (
        "# Limits\n\nBytes, characters and seconds are in the names.\n\n"
        f"## Settings of the same name\n\n{head}{changeable}\n"
        f"## Part of the contract\n\n{head}{fixed}"
    )


def _documented(body: list[ast.stmt]) -> list[tuple[str, str]]:
    """Assignments that a text follows, with that text."""
    found = []
    for statement, following in itertools.pairwise(body):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.AnnAssign):
            target = statement.target
        if (
            isinstance(target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found.append((target.id, " ".join(str(following.value.value).split())))
    return found


def errors_page() -> str:
    head = (
        "# Errors\n\nOver REST an error is `{code, message, details, request_id}` with the status "
        "below. Codes are stable; messages may improve.\n"
    )
    lines = [
        head,
        "| code | status | whose turn |",
        "|---|---|---|",
    ]
    for kind in _raised(errors.ZibaldoneError):
        turn = "the caller" if issubclass(kind, errors.RequestError) else "the operator"
        lines.append(f"| `{kind.code}` | {kind.status} | {turn} |")
    return "\n".join(lines) + "\n"


def _raised(kind: type[errors.ZibaldoneError]) -> list[type[errors.ZibaldoneError]]:
    """One for each code; some that are raised have others below them."""
    by_code: dict[str, type[errors.ZibaldoneError]] = {}
    waiting = kind.__subclasses__()
    while waiting:
        found = waiting.pop()
        by_code[found.code] = found
        waiting += found.__subclasses__()
    return sorted(by_code.values(), key=lambda found: (found.status, found.code))


def cli_page() -> str:
    parts = ["# Command line\n\n`--json` prints an answer for programs; errors too.\n"]
    inspected = inspect.getdoc(inspect.getmodule(main_module())) or ""
    parts.append("Exit codes:\n\n```text\n" + inspected.partition("\n\n")[2] + "\n```\n")
    parts += _command_sections(commands, "zibaldone")
    return "\n".join(parts)


def main_module() -> Callable[..., Any]:
    from zibaldone.cli.main import main

    return main


def _command_sections(command: click.Command, path: str) -> list[str]:
    with click.Context(command, info_name=path, terminal_width=100, max_content_width=100) as ctx:
        parts = [f"## {path}\n\n```text\n{command.get_help(ctx)}\n```\n"]
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                child = command.get_command(ctx, name)
                if child is not None and not child.hidden:
                    parts += _command_sections(child, f"{path} {name}")
    return parts


PAGES: dict[str, Callable[[], str]] = {
    "tools.md": tools_page,
    "settings.md": settings_page,
    "limits.md": limits_page,
    "errors.md": errors_page,
    "cli.md": cli_page,
}


def main() -> int:
    stale = []
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        file, text = REFERENCE / name, _MADE + page()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                file.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.stderr.write(f"docs/reference is not up to date ({', '.join(stale)}): make docs\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

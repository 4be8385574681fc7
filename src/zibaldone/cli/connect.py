"""zibaldone connect: set up an MCP client."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click

from zibaldone import settings
from zibaldone.cli import context
from zibaldone.cli.client_files import snippet, write
from zibaldone.cli.clients import CLIENTS, Client, Entry
from zibaldone.errors import ConfigurationError, InvalidArgument

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"zib_[A-Za-z0-9_-]{20,}")
"""An API key; most could be the name of a variable, too."""
_IN_THE_COMMAND = ("data", "store", "config")
"""Settings that the command of an entry carries."""


@click.command()
@click.argument("client", type=click.Choice(sorted(CLIENTS)), metavar="CLIENT")
@click.option("--http", "transport", flag_value="http", help="Connect to the running server.")
@click.option("--stdio", "transport", flag_value="stdio", help="Let the client start its own.")
@click.option("--profile", default="mcp", show_default=True, help="Which tools to offer.")
@click.option("--url", help="Address of the server, if it is not the one of the settings.")
@click.option(
    "--key",
    "key_variable",
    metavar="VARIABLE",
    help="Environment variable of the client that holds an API key; with --http.",
)
@click.option("--name", default="zibaldone", show_default=True, help="Its name in the client.")
@click.option("--file", type=click.Path(path_type=Path), help="Another configuration file.")
@click.option("--write", "is_written", is_flag=True, help="Write it into that file.")
@context.json_option
@click.pass_obj
def connect(
    options: context.Options,
    /,
    client: str,
    transport: str | None,
    profile: str,
    url: str | None,
    key_variable: str | None,
    name: str,
    file: Path | None,
    is_written: bool,
    as_json: bool,
) -> None:
    """Set up an MCP client, such as Claude Code or Cursor.

    CLIENT is claude-code, claude-desktop, codex, cursor or vscode. Without --write it only shows
    what belongs into which file. With it the entry is merged into the file; everything else there
    stays, and the file as it was is kept beside it. --http is the default, except for Claude
    Desktop, which starts servers itself.
    """
    from zibaldone.wiring.catalogue import build_catalogue

    chosen = CLIENTS[client]
    loaded = options.settings()
    path = build_catalogue(loaded).profile(profile).path
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            "A name has letters, digits, _ and -, and starts with a letter.", field="name"
        )
    if transport is None:
        transport = "http" if chosen.has_http else "stdio"
    if transport == "http":
        entry = _http_entry(chosen, loaded, path, url, key_variable)
    else:
        if url is not None or key_variable is not None:
            raise InvalidArgument("--url and --key go with --http.", field="transport")
        entry = _stdio_entry(chosen, options, loaded, profile)
        _mention_environment()
    target = (file or chosen.file(os.environ)).absolute()
    text = snippet(chosen, name, entry)
    answer = {
        "client": client,
        "transport": transport,
        "file": str(target),
        "name": name,
        "entry": entry,
        "snippet": text,
        "command": _own_command(chosen, name, entry),
        "status": "shown",
        "backup": None,
    }
    if is_written:
        written = write(chosen, target, name, entry)
        backup = None if written.backup is None else str(written.backup)
        answer |= {"status": written.status, "backup": backup}
    if as_json:
        context.echo_json(answer)
    elif is_written:
        _echo_written(chosen, answer)
    else:
        _echo_shown(chosen, answer)


def _http_entry(
    client: Client,
    loaded: settings.Settings,
    path: str,
    url: str | None,
    key_variable: str | None,
) -> Entry:
    if not client.has_http:
        raise InvalidArgument(
            f"{client.title} reads only servers that it starts from its file. Use --stdio, or add "
            "the server as a connector in its settings.",
            field="transport",
        )
    if key_variable is not None and (
        not _VARIABLE.fullmatch(key_variable) or _SECRET.fullmatch(key_variable)
    ):
        raise InvalidArgument(
            "--key takes the name of an environment variable, such as ZIB_KEY, not a key: the "
            "key itself is not written into the file.",
            field="key",
        )
    if key_variable is not None and key_variable.upper().startswith(settings.ENV_PREFIX):
        raise InvalidArgument(
            f"Names that start with {settings.ENV_PREFIX} are settings of the server. Choose "
            "another, such as ZIB_KEY.",
            field="key",
        )
    return client.http_entry(_base(loaded, url) + path, key_variable)


def _base(loaded: settings.Settings, url: str | None) -> str:
    given = url or loaded.public_url
    if given:
        if urlsplit(given).scheme not in ("http", "https") or not urlsplit(given).netloc:
            raise InvalidArgument("--url must start with http:// or https://.", field="url")
        return given.rstrip("/")
    is_any = loaded.host in ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
    host = "127.0.0.1" if is_any else loaded.host
    return f"http://{f'[{host}]' if ':' in host else host}:{loaded.port}"


def _stdio_entry(
    client: Client, options: context.Options, loaded: settings.Settings, profile: str
) -> Entry:
    """The command with absolute paths: a client starts it somewhere, with few variables."""
    command, *arguments = _program()
    arguments += ["--data", str(loaded.data.absolute())]
    if loaded.store and not _is_in_file(options, "store"):
        if _has_password(loaded.store):
            raise ConfigurationError(
                "The address of the store has a password, which is not written into the file of a "
                f"client. Put store into {settings.FILE_NAME} and give its path with --config."
            )
        arguments += ["--store", loaded.store]
    if config := settings.config_file(os.environ, options.config):
        arguments += ["--config", str(config.absolute())]
    arguments.append("stdio")
    if profile != "mcp":
        arguments += ["--profile", profile]
    return client.stdio_entry(command, arguments)


def _has_password(store: str) -> bool:
    url = urlsplit(store)
    return url.password is not None or "password" in parse_qs(url.query)


def _is_in_file(options: context.Options, name: str) -> bool:
    return getattr(options, name) is None and settings.ENV_PREFIX + name.upper() not in os.environ


def _program() -> list[str]:
    """What starts this installation again, by absolute paths."""
    # uvx runs it from its cache, which may be emptied any time.
    is_cached = any(part.startswith("archive-v") for part in Path(sys.prefix).parts)
    if is_cached and (uvx := shutil.which("uvx")):
        return [uvx, "zibaldone"]
    if script := shutil.which("zibaldone", path=sysconfig.get_path("scripts")):
        return [str(Path(script).absolute())]
    return [sys.executable, "-m", "zibaldone"]


def _mention_environment() -> None:
    """A client does not have the variables of this shell."""
    carried = {settings.ENV_PREFIX + name.upper() for name in _IN_THE_COMMAND}
    left = sorted(
        name for name in os.environ if name.startswith(settings.ENV_PREFIX) and name not in carried
    )
    if left:
        click.echo(
            f"Note: not taken over from the environment: {', '.join(left)}. Put what the client "
            f"needs into {settings.FILE_NAME}.",
            err=True,
        )


def _own_command(client: Client, name: str, entry: Entry) -> str | None:
    """The client's own command that does the same for all folders."""
    if client.name != "claude-code":
        return None
    words = ["claude", "mcp", "add", "--scope", "user", "--transport", entry["type"], name]
    if entry["type"] == "stdio":
        return shlex.join([*words, "--", entry["command"], *entry["args"]])
    words.append(entry["url"])
    for header, value in entry.get("headers", {}).items():
        words += ["--header", f"{header}: {value}"]  # quoted, so that no shell puts the key in
    return shlex.join(words)


def _echo_shown(client: Client, answer: context.Answer) -> None:
    click.echo(f"# {client.title}: {answer['file']}", err=True)
    click.echo(answer["snippet"], nl=False)
    if answer["command"]:
        click.echo(f"# or, for all folders: {answer['command']}", err=True)
    if server := _needed_server(client, answer):
        click.echo(f"# {server}", err=True)
    click.echo("# --write merges this into the file.", err=True)


def _echo_written(client: Client, answer: context.Answer) -> None:
    match answer["status"]:
        case "unchanged":
            click.echo(f"{answer['file']} has this entry already.")
            return
        case "created":
            click.echo(f"{answer['file']} created, with the server {answer['name']}.")
        case _:
            click.echo(f"{answer['name']} written into {answer['file']}.")
            click.echo(f"The file as it was: {answer['backup']}")
    click.echo(client.after.format(title=client.title))
    if server := _needed_server(client, answer):
        click.echo(server)


def _needed_server(client: Client, answer: context.Answer) -> str | None:
    """What a client does not do that does not start the server itself."""
    if answer["transport"] != "http":
        return None
    return f"{client.title} needs the server running at {answer['entry']['url']}: zibaldone serve"

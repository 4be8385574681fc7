"""zibaldone doctor: is everything as it should be, and if not, what to do."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click

import zibaldone
from zibaldone import settings
from zibaldone.cli import context
from zibaldone.cli.doctor_surroundings import extras, server_at
from zibaldone.errors import ConfigurationError, ZibaldoneError
from zibaldone.limits import DISK_FREE_BYTES_FEW, MIB
from zibaldone.store.open import inspect_store, store_url
from zibaldone.store.port import StorePlace

Status = Literal["ok", "warn", "fail"]

_CONFIG_VARIABLE = settings.ENV_PREFIX + "CONFIG"


@dataclass(frozen=True, slots=True)
class Finding:
    status: Status
    subject: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class InForce:
    name: str
    value: Any
    source: str


@click.command()
@click.option("--thorough", is_flag=True, help="Read and compare everything in the database.")
@context.json_option
@click.pass_context
def doctor(ctx: click.Context, thorough: bool, as_json: bool) -> None:
    """Check the installation, settings, database and server."""
    options: context.Options = ctx.obj
    findings = list(_installation())
    in_force: list[InForce] = []
    try:
        found = options.settings()
    except ConfigurationError as error:
        findings.append(Finding("fail", "settings", error.message, "Mend or remove it."))
    else:
        in_force = _in_force(options, found)
        changed = [one.name for one in in_force if one.source != "default"]
        findings.append(Finding("ok", "settings", f"set: {', '.join(changed) or 'none'}"))
        findings.append(_embedder(found))
        findings += _data_folder(found.data)
        findings += _database(options, store_url(found.data, found.store), thorough)
        findings.append(_server(found.host, found.port))
    is_ok = all(finding.status != "fail" for finding in findings)
    if as_json:
        shown = {
            "ok": is_ok,
            "findings": [asdict(finding) for finding in findings],
            "settings": [asdict(one) for one in in_force],
        }
        context.echo_json(shown)
    else:
        _echo(findings, in_force)
    if not is_ok:
        ctx.exit(1)


def _echo(findings: list[Finding], in_force: list[InForce]) -> None:
    rows = [(one.status, one.subject, context.printable(one.text)) for one in findings]
    context.echo_table([*rows, *_advice(findings)])
    if in_force:
        click.echo("\nSettings in force:")
        context.echo_table(
            [(f"  {one.name}", _shown_value(one.value), one.source) for one in in_force]
        )


def _shown_value(value: Any) -> str:
    if isinstance(value, tuple | dict | str) and not value:
        return "-"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return context.printable(text)


def _advice(findings: list[Finding]) -> Iterator[tuple[str, str, str]]:
    """After all findings, so that what is to be done stands last on the screen."""
    for one in findings:
        if one.advice:
            yield "->", one.subject, context.printable(one.advice)


def _installation() -> Iterator[Finding]:
    yield Finding("ok", "zibaldone", zibaldone.__version__)
    yield Finding("ok", "python", f"{platform.python_version()} on {platform.platform()}")
    for extra in extras():
        if extra.missing:
            text = f"not installed: {', '.join(extra.missing)} ({extra.install_command})"
        else:
            text = "installed"
        yield Finding("ok", f"extra {extra.name}", text)


def _in_force(options: context.Options, found: settings.Settings) -> list[InForce]:
    """Every setting with the place it comes from. What could be a secret is not shown."""
    chosen = {name: os.environ[name] for name in (_CONFIG_VARIABLE,) if name in os.environ}
    from_file = _flat(settings.load({}, chosen, options.config))
    result = []
    for name, value in _flat(found).items():
        variable = settings.ENV_PREFIX + name.upper()
        if name in ("data", "store") and getattr(options, name) is not None:
            source = f"option --{name}"
        elif variable in os.environ:
            source = f"environment variable {variable}"
        elif from_file[name] != settings.BY_NAME[name].default:
            source = str(options.config or chosen.get(_CONFIG_VARIABLE, settings.FILE_NAME))
        else:
            source = "default"
        is_hidden = settings.BY_NAME[name].is_secret and value
        result.append(InForce(name, "(not shown)" if is_hidden else value, source))
    return result


def _flat(found: settings.Settings) -> dict[str, Any]:
    values = asdict(found)
    bounds = values.pop("limits")
    return {**values, **bounds}


def _data_folder(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield Finding("warn", "data folder", f"{folder} is not there; the first write makes it")
        return
    if not folder.is_dir():
        yield Finding(
            "fail", "data folder", f"{folder} is no folder", "Choose another with --data."
        )
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "fail",
            "data folder",
            f"{folder} cannot be written by this user",
            f"Give it to the user that runs Zibaldone: chown -R USER {folder}",
        )
        return
    mode = folder.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        yield Finding(
            "warn",
            "data folder",
            f"{folder} is open to other users of this machine (mode {mode:o})",
            f"chmod 700 {folder}",
        )
    else:
        yield Finding("ok", "data folder", str(folder))
    free_bytes = shutil.disk_usage(folder).free
    is_enough = free_bytes >= DISK_FREE_BYTES_FEW
    yield Finding(
        "ok" if is_enough else "warn",
        "disk space",
        f"{free_bytes // MIB} MiB free",
        "" if is_enough else "Make room: writes are refused when the disk is full.",
    )


def _embedder(found: settings.Settings) -> Finding:
    from zibaldone.wiring.runtime import chosen_embedder

    try:
        chosen = chosen_embedder(found)
    except ConfigurationError as error:
        return Finding("fail", "embedder", error.message, "Mend the settings that it names.")
    if chosen is None:
        return Finding("ok", "embedder", "none: keyword search only")
    return Finding("ok", "embedder", f"{chosen.identity}, {chosen.dimensions} dimensions")


def _database(options: context.Options, url: str, thorough: bool) -> Iterator[Finding]:
    try:
        place = inspect_store(url)
    except ConfigurationError as error:
        yield Finding("fail", "database", error.message, "Correct the setting store.")
        return
    yield Finding("ok", place.engine, place.version)
    if not place.is_made:
        yield Finding(
            "warn", "database", f"{place.description} does not exist yet; the first write makes it"
        )
    elif place.problem:
        yield Finding("fail", "database", place.problem, place.advice)
    else:
        yield from _content(options, place, thorough)


def _content(options: context.Options, place: StorePlace, thorough: bool) -> Iterator[Finding]:
    try:
        with context.opened(options, embedder="none") as session:
            checked = session.run(session.runtime.store.check(thorough=thorough))
    except ZibaldoneError as error:
        yield Finding("fail", "database", error.message, _remedy(error, place))
        return
    facts = ", ".join(f"{name} {value}" for name, value in checked.facts.items())
    if checked.ok:
        depth = "everything compared" if thorough else "structure checked; --thorough reads all"
        yield Finding("ok", "database", f"{facts} ({depth})")
    for problem in checked.problems:
        yield Finding("fail", "database", problem, place.recovery)


def _remedy(error: ZibaldoneError, place: StorePlace) -> str:
    if isinstance(error, ConfigurationError):
        return "Choose another folder with --data or another --store, or upgrade Zibaldone."
    if error.code == "STORAGE_CORRUPT":
        return place.recovery
    if error.code == "STORAGE_FULL":
        return "Make room on the disk."
    return "See which other process uses the database, and who owns it."


def _server(host: str, port: int) -> Finding:
    address = f"http://{host}:{port}"
    found = server_at(host, port)
    if found is None:
        return Finding("ok", "server", f"none answers at {address}")
    if found.version is None:
        return Finding(
            "warn",
            "server",
            f"another program answers at {address}",
            "Choose another port with --port.",
        )
    if not found.is_healthy:
        return Finding(
            "fail", "server", f"{address} is degraded: {found.reason}", f"See {address}/health"
        )
    if found.version != zibaldone.__version__:
        return Finding(
            "warn",
            "server",
            f"{address} is healthy, of version {found.version}",
            "Restart it to serve the installed version.",
        )
    return Finding("ok", "server", f"{address} is healthy")

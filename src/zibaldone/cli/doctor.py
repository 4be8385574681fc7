"""zibaldone doctor: find problems, and say what to do about them."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click

import zibaldone
from zibaldone import settings
from zibaldone.access.principal import Tenant
from zibaldone.cli import context
from zibaldone.cli.doctor_surroundings import extras, server_at
from zibaldone.errors import ConfigurationError, ZibaldoneError
from zibaldone.extras import install_command
from zibaldone.limits import DISK_FREE_BYTES_LOW, MIB
from zibaldone.store.open import inspect_store, store_mark, store_url
from zibaldone.store.port import StorePlace

Status = Literal["ok", "warn", "fail"]

_CONFIG_VARIABLE = settings.ENV_PREFIX + "CONFIG"
_PASSWORD = re.compile(r"(://[^/@:]*):[^@]*@")
"""In a URL such as postgresql://user:password@host/name."""


@dataclass(frozen=True, slots=True)
class Finding:
    status: Status
    subject: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class SettingInForce:
    name: str
    value: Any
    source: str


@click.command()
@click.option("--thorough", is_flag=True, help="Read and compare everything in the database.")
@click.option("--all", "show_all", is_flag=True, help="Show settings that have their default, too.")
@context.json_option
@click.pass_context
def doctor(ctx: click.Context, thorough: bool, show_all: bool, as_json: bool) -> None:
    """Check the installation, settings, database and server."""
    options: context.Options = ctx.obj
    findings = list(_installation())
    in_force: list[SettingInForce] = []
    try:
        chosen = options.settings()
    except ConfigurationError as error:
        findings.append(Finding("fail", "settings", error.message, "Correct or remove it."))
    else:
        in_force = _in_force(options, chosen)
        changed = [setting.name for setting in in_force if setting.source != "default"]
        number = f"{len(changed)} set" if changed else "all at their defaults"
        findings.append(Finding("ok", "settings", f"{number}; --all shows every one"))
        findings.append(_embedder(chosen))
        if chosen.reranker:
            findings.append(_reranker(chosen))
        if chosen.store:
            findings.append(Finding("ok", "data folder", "not used: the store is elsewhere"))
        else:
            findings += _data_folder(chosen.data)
        findings += _database(options, store_url(chosen.data, chosen.store), thorough)
        findings.append(_server(chosen))
    is_ok = all(finding.status != "fail" for finding in findings)
    if as_json:
        report = {
            "ok": is_ok,
            "findings": [asdict(finding) for finding in findings],
            "settings": [asdict(setting) for setting in in_force],
        }
        context.echo_json(report)
    else:
        shown = in_force if show_all else [one for one in in_force if one.source != "default"]
        _echo(findings, shown)
    if not is_ok:
        ctx.exit(1)


def _echo(findings: list[Finding], in_force: list[SettingInForce]) -> None:
    rows = [
        (finding.status, finding.subject, context.printable(finding.text)) for finding in findings
    ]
    context.echo_table([*rows, *_advice(findings)])
    if in_force:
        click.echo("\nSettings:")
        context.echo_table(
            [(f"  {setting.name}", setting.source, _as_text(setting.value)) for setting in in_force]
        )


def _as_text(value: Any) -> str:
    if isinstance(value, tuple | dict | str) and not value:
        return "-"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return context.printable(text)


def _advice(findings: list[Finding]) -> Iterator[tuple[str, str, str]]:
    """Rows that come after all findings, so that what to do is last on the screen."""
    for finding in findings:
        if finding.advice:
            yield "->", finding.subject, context.printable(finding.advice)


def _installation() -> Iterator[Finding]:
    yield Finding("ok", "zibaldone", zibaldone.__version__)
    yield Finding("ok", "python", f"{platform.python_version()} on {platform.platform()}")
    for extra in extras():
        text = f"not installed ({install_command(extra.name)})" if extra.missing else "installed"
        yield Finding("ok", f"extra {extra.name}", text)


def _in_force(options: context.Options, chosen: settings.Settings) -> list[SettingInForce]:
    """Every setting and where it comes from. Secrets are hidden."""
    config = {name: os.environ[name] for name in (_CONFIG_VARIABLE,) if name in os.environ}
    from_file = _flat(settings.load({}, config, options.config))
    result = []
    for name, value in _flat(chosen).items():
        variable = settings.ENV_PREFIX + name.upper()
        if name in ("data", "store", "vectors") and getattr(options, name) is not None:
            source = f"option --{name}"
        elif variable in os.environ:
            source = f"environment variable {variable}"
        elif from_file[name] != settings.BY_NAME[name].default:
            source = str(options.config or config.get(_CONFIG_VARIABLE, settings.FILE_NAME))
        else:
            source = "default"
        result.append(SettingInForce(name, _without_secrets(name, value), source))
    return result


def _without_secrets(name: str, value: Any) -> Any:
    if settings.BY_NAME[name].is_secret and value:
        return "(not shown)"
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


def _flat(chosen: settings.Settings) -> dict[str, Any]:
    values = asdict(chosen)
    limits = values.pop("limits")
    return {**values, **limits}


def _data_folder(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield Finding("warn", "data folder", f"{folder} does not exist; the first write creates it")
        return
    if not folder.is_dir():
        yield Finding(
            "fail", "data folder", f"{folder} is not a folder", "Choose another with --data."
        )
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "fail",
            "data folder",
            f"this user cannot write to {folder}",
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
    is_enough = free_bytes >= DISK_FREE_BYTES_LOW
    yield Finding(
        "ok" if is_enough else "warn",
        "disk space",
        f"{free_bytes // MIB} MiB free",
        "" if is_enough else "Free some space: writes fail when the disk is full.",
    )


def _embedder(chosen: settings.Settings) -> Finding:
    from zibaldone.wiring.runtime import chosen_embedder

    try:
        embedder = chosen_embedder(chosen)
    except ConfigurationError as error:
        return Finding("fail", "embedder", error.message, "Correct these settings.")
    if embedder is None and chosen.embedder == "auto":
        return Finding(
            "warn",
            "embedder",
            "no embedding model is installed: search uses keywords only",
            "To install one: zibaldone model install",
        )
    if embedder is None:
        return Finding("ok", "embedder", "none: keyword search only")
    chosen_by = " (chosen by auto)" if chosen.embedder == "auto" else ""
    text = f"{embedder.identity}, {embedder.dimensions} dimensions{chosen_by}"
    return Finding("ok", "embedder", text)


def _reranker(chosen: settings.Settings) -> Finding:
    """Ask it once, as a search would."""
    from zibaldone.wiring.runtime import chosen_reranker

    seconds_max = chosen.limits.rerank_seconds_max

    async def ask() -> float:
        reranker = chosen_reranker(chosen)
        if reranker is None:
            return 0.0
        started_s = time.perf_counter()
        async with asyncio.timeout(seconds_max):
            await reranker.scores("Which of these is about water?", ["rivers", "stones"])
        return time.perf_counter() - started_s

    try:
        took_s = asyncio.run(ask())
    except ConfigurationError as error:
        return Finding("fail", "reranker", error.message, "Correct these settings.")
    except TimeoutError:
        why = f"it did not answer within {seconds_max:g} s (rerank_seconds_max)"
        return Finding("warn", "reranker", why, "Searches go on without it. Start it.")
    except ZibaldoneError as error:
        return Finding("warn", "reranker", error.message, "Searches go on without it.")
    return Finding("ok", "reranker", f"answers in {took_s * 1000:.0f} ms")


def _database(options: context.Options, url: str, thorough: bool) -> Iterator[Finding]:
    try:
        place = inspect_store(url)
    except ConfigurationError as error:
        yield Finding("fail", "database", error.message, "Correct the setting store.")
        return
    yield Finding("ok", place.engine, place.version)
    if place.problem:
        yield Finding("fail", "database", place.problem, place.advice)
    elif not place.is_made:
        yield Finding(
            "warn",
            "database",
            f"{place.description} does not exist; the first write creates it",
        )
    else:
        yield from _content(options, place, thorough)


def _content(options: context.Options, place: StorePlace, thorough: bool) -> Iterator[Finding]:
    try:
        with context.opened(options, embedder="none") as session:
            store = session.runtime.store
            checked = session.run(store.check(thorough=thorough))
            session.run(store.read(Tenant(), lambda reader: None))
            read_store = store.read_store_status
    except ZibaldoneError as error:
        yield Finding("fail", "database", error.message, _remedy(error, place))
        return
    facts = ", ".join(f"{name} {value}" for name, value in checked.facts.items())
    if checked.ok:
        depth = "everything checked" if thorough else "structure checked; --thorough checks all"
        yield Finding("ok", "database", f"{facts} ({depth})")
    for problem in checked.problems:
        yield Finding("fail", "database", problem, place.recovery)
    if read_store is not None:
        is_ok = read_store.status == "ok"
        message = read_store.message or "it has all that the store has"
        advice = "" if is_ok else "See whether that server runs and follows the primary."
        yield Finding("ok" if is_ok else "warn", "read store", message, advice)


def _remedy(error: ZibaldoneError, place: StorePlace) -> str:
    if isinstance(error, ConfigurationError):
        return "Choose another folder with --data or another --store, or upgrade Zibaldone."
    if error.code == "STORAGE_CORRUPT":
        return place.recovery
    if error.code == "STORAGE_FULL":
        return "Free some space on the disk."
    return "Find out which other process uses the database, and who owns it."


def _server(chosen: settings.Settings) -> Finding:
    address = f"http://{chosen.host}:{chosen.port}"
    server = server_at(chosen.host, chosen.port)
    if server is None:
        return Finding("ok", "server", f"no server at {address}")
    if server.version is None:
        return Finding(
            "warn",
            "server",
            f"another program answers at {address}",
            "Choose another port with --port.",
        )
    if not server.is_healthy:
        return Finding(
            "fail", "server", f"{address} is degraded: {server.reason}", f"See {address}/health"
        )
    ours = _mark(chosen)
    if ours and server.store_mark and ours != server.store_mark:
        what = "store" if chosen.store else f"folder than {chosen.data}"
        return Finding(
            "warn",
            "server",
            f"{address} is healthy, but serves another {what}",
            "Give this command the --data and --store that the server was started with.",
        )
    if server.version != zibaldone.__version__:
        return Finding(
            "warn",
            "server",
            f"{address} is healthy and runs version {server.version}",
            "Restart it to run the installed version.",
        )
    return Finding("ok", "server", f"{address} is healthy")


def _mark(chosen: settings.Settings) -> str | None:
    try:
        return store_mark(store_url(chosen.data, chosen.store))
    except ConfigurationError:
        return None  # told by the finding about the database

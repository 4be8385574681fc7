"""What `doctor` checks besides the database: optional packages and a running server."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

import orjson

from zibaldone.limits import KIB

_PACKAGE = "zibaldone"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*;.*\bextra\s*==\s*['\"](?P<extra>[\w.-]+)['\"]")
_FOR_DEVELOPERS = "dev"
_ANSWER_SECONDS_MAX = 3.0
_ANSWER_BYTES_MAX = 64 * KIB


@dataclass(frozen=True, slots=True)
class Extra:
    name: str
    missing: tuple[str, ...]


def extras() -> Iterator[Extra]:
    """The extras of the installed package, from its metadata."""
    wanted: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return  # run from its sources, not installed
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match and match["extra"] != _FOR_DEVELOPERS:
            wanted.setdefault(match["extra"], []).append(match["name"])
    for name, packages in sorted(wanted.items()):
        yield Extra(name, tuple(package for package in packages if not _is_installed(package)))


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class RunningServer:
    version: str | None
    """None: another program answers."""
    is_healthy: bool = False
    reason: str = ""
    store_mark: str | None = None
    """Says which store it serves; None: an older version, or not on this machine."""


def server_at(host: str, port: int) -> RunningServer | None:
    """The server at this address, or None."""
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS_MAX)
    try:
        connection.connect()
    except OSError:
        return None
    try:
        connection.request("GET", "/health")
        health = orjson.loads(connection.getresponse().read(_ANSWER_BYTES_MAX))
        version, status, services = health["version"], health["status"], health["services"]
        mark = health.get("store_mark")
        broken = [
            f"{name}: {service.get('message', service['status'])}"
            for name, service in services.items()
            if service["status"] != "ok"
        ]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return RunningServer(None)
    finally:
        connection.close()
    return RunningServer(str(version), status == "healthy", ", ".join(broken), mark)

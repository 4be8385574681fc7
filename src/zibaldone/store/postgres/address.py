"""Where the database is: the URL with our own parameters taken out and sensible defaults put in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg import conninfo

from zibaldone.errors import ConfigurationError

CONNECTIONS_DEFAULT = 16
CONNECTIONS_MIN = 6
CONNECTIONS_MAX = 500

_DEFAULTS = {
    "application_name": "zibaldone",
    "connect_timeout": "5",
    # A server that vanished without a word is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
"""For libpq, unless the URL says otherwise."""

_OWN = ("connections_max", "direct_host", "direct_port")
"""Parameters of the URL that are ours."""


@dataclass(frozen=True, slots=True)
class Address:
    parameters: dict[str, Any]
    """As `psycopg.connect` takes them."""
    connections_max: int
    """Connections that reads and writes may have open at a time."""
    direct_parameters: dict[str, Any] = field(default_factory=dict)
    """Host and port of the server itself, where the URL leads to a pooler."""

    @classmethod
    def parse(cls, url: str, setting: str = "store", *, is_standby: bool = False) -> Address:
        """ConfigurationError where the URL is malformed; no message repeats any of it.

        `is_standby`: of several hosts, one that follows is wanted, not the primary.
        """
        try:
            return cls._parse(url, "standby" if is_standby else "read-write")
        except ConfigurationError as problem:
            raise ConfigurationError(f"{setting}: {problem.message}") from None

    @classmethod
    def _parse(cls, url: str, of_several: str) -> Address:
        url, own = _own_parameters(url)
        connections_max = _connections_max(own.get("connections_max"))
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.Error:  # quotes what it cannot parse, maybe a password
            raise _malformed() from None
        direct = {
            name: own[f"direct_{name}"] for name in ("host", "port") if f"direct_{name}" in own
        }
        ports = f"{given.get('port') or ''},{direct.get('port', '')}"
        if not all(port.isdecimal() for port in ports.split(",") if port):
            raise _malformed()
        given = {name: value for name, value in given.items() if value is not None}
        chosen = _of_several(given, of_several)
        parameters = {**_DEFAULTS, **chosen, **given, "client_encoding": "utf8"}
        return cls(parameters, connections_max, direct)

    @property
    def direct(self) -> Address:
        """The same without a pooler in between, if the URL says how."""
        if not self.direct_parameters:
            return self
        kept = {name: value for name, value in self.parameters.items() if name != "hostaddr"}
        given = {**kept, **self.direct_parameters}
        chosen = _of_several(given, "read-write")
        return replace(self, parameters={**chosen, **given}, direct_parameters={})

    @property
    def description(self) -> str:
        database = self.parameters.get("dbname") or self.parameters.get("user") or "of this user"
        host = self.parameters.get("host") or self.parameters.get("hostaddr") or "this machine"
        return f"the PostgreSQL database {database} on {host}"

    def without_secrets(self, text: str) -> str:
        """A message of the server or of the driver, fit to be shown."""
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def _of_several(given: dict[str, Any], kind: str) -> dict[str, str]:
    """Of several hosts, whichever is of the kind."""
    hosts = str(given.get("host") or given.get("hostaddr") or "")
    return {"target_session_attrs": kind} if "," in hosts else {}


def _own_parameters(url: str) -> tuple[str, dict[str, str]]:
    """The URL as libpq takes it, and the parameters that are not libpq's."""
    place, _, query = url.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise _malformed() from None
    ours = {name: value for name, value in pairs if name in _OWN}
    theirs = [(name, value) for name, value in pairs if name not in _OWN]
    return f"{place}?{urlencode(theirs, quote_via=quote)}" if ours else url, ours


def _connections_max(number: str | None) -> int:
    if number is None:
        return CONNECTIONS_DEFAULT
    if not number.isdecimal() or not CONNECTIONS_MIN <= int(number) <= CONNECTIONS_MAX:
        raise ConfigurationError(
            f"connections_max must be a whole number from {CONNECTIONS_MIN} to {CONNECTIONS_MAX}."
        )
    return int(number)


def _malformed() -> ConfigurationError:
    return ConfigurationError(
        "the URL is not well formed: postgresql://user:password@host:port/database. "
        "Write characters like @ / : % in a password as %40 %2F %3A %25."
    )

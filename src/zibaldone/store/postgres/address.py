"""Where the database is: the URL with our own parameters taken out and sensible defaults put in."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Address:
    parameters: dict[str, Any]
    """As `psycopg.connect` takes them."""
    connections_max: int
    """Connections that reads and writes may have open at a time."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """ConfigurationError where the URL is malformed; no message repeats any of it."""
        url, connections_max = _own_parameters(url)
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.Error:  # quotes what it cannot parse, maybe a password
            raise _malformed() from None
        if not all(port.isdecimal() for port in str(given.get("port") or 0).split(",") if port):
            raise _malformed()
        hosts = str(given.get("host") or given.get("hostaddr") or "").split(",")
        defaults = dict(_DEFAULTS)
        if len(hosts) > 1:
            defaults["target_session_attrs"] = "read-write"  # whichever is the primary
        given = {name: value for name, value in given.items() if value is not None}
        return cls({**defaults, **given, "client_encoding": "utf8"}, connections_max)

    @property
    def description(self) -> str:
        database = self.parameters.get("dbname") or self.parameters.get("user") or "of this user"
        host = self.parameters.get("host") or self.parameters.get("hostaddr") or "this machine"
        return f"the PostgreSQL database {database} on {host}"

    def without_secrets(self, text: str) -> str:
        """A message of the server or of the driver, fit to be shown."""
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def _own_parameters(url: str) -> tuple[str, int]:
    """The URL as libpq takes it, and `connections_max`, which is not libpq's."""
    place, _, query = url.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise _malformed() from None
    ours = [value for name, value in pairs if name == "connections_max"]
    theirs = [(name, value) for name, value in pairs if name != "connections_max"]
    if not ours:
        return url, CONNECTIONS_DEFAULT
    number = ours[-1]
    if not number.isdecimal() or not CONNECTIONS_MIN <= int(number) <= CONNECTIONS_MAX:
        raise ConfigurationError(
            f"store: connections_max must be a whole number from {CONNECTIONS_MIN} to "
            f"{CONNECTIONS_MAX}."
        )
    return f"{place}?{urlencode(theirs, quote_via=quote)}", int(number)


def _malformed() -> ConfigurationError:
    return ConfigurationError(
        "store: the URL is not well formed: postgresql://user:password@host:port/database. "
        "Write characters like @ / : % in a password as %40 %2F %3A %25."
    )

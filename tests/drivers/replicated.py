"""Two PostgreSQL servers, of which one follows the other, synchronously."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from tests.drivers.postgres import Databases, PostgresServer


class ReplicatedPostgres:
    """After `fail_over` the standby is the primary; `restore` makes the dead one its standby."""

    def __init__(self, *, is_synchronous: bool = True) -> None:
        self._is_synchronous = is_synchronous
        self._servers = [PostgresServer()]
        self.name = ""
        """Of the database that the product uses."""

    @property
    def primary(self) -> PostgresServer:
        return self._servers[0]

    @property
    def standby(self) -> PostgresServer:
        return self._servers[1]

    @property
    def url(self) -> str:
        """For the product: both hosts, and libpq finds out which one is the primary."""
        first = self._databases.url(self.name)
        hosts = ",".join(sorted(server.host for server in self._servers))
        return first.replace(_quoted(self._first_host), _quoted(hosts))

    @property
    def standby_url(self) -> str:
        """For the product: the standby alone."""
        first = self._databases.url(self.name)
        return first.replace(_quoted(self._first_host), _quoted(self.standby.host))

    def __enter__(self) -> Self:
        try:
            self.primary.start()
            self._first_host = self.primary.host
            self._databases = Databases(self.primary.url)
            self.name = self._databases.create()
            self._servers.append(PostgresServer())
            self.restore()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for server in self._servers:
            server.stop()

    def restore(self) -> None:
        """Let the second one follow the first."""
        name = f"zibaldone_{self._servers[1].host[-8:]}"
        self.standby.start_as_standby_of(self.primary, name)
        if self._is_synchronous:
            self.primary.wait_for_standby(name)

    def stop_following(self) -> None:
        """The standby gets nothing any more of what the primary writes."""
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        with psycopg.connect(self.primary.url, autocommit=True) as raw:
            while raw.execute("SELECT count(*) FROM pg_stat_replication").fetchone() != (0,):
                time.sleep(0.02)

    def promote(self) -> None:
        self.standby.promote()
        self._servers.reverse()

    def admin_url(self) -> str:
        return self.primary.url.replace("/postgres?", f"/{self.name}?")


def _quoted(host: str) -> str:
    return quote(host, safe="")

"""Three servers behind nginx and a worker beside them, on one PostgreSQL, each of which may die."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.drivers.keys import Key, create_key
from tests.drivers.nginx import HOST, Nginx
from tests.drivers.postgres import Databases, PostgresServer
from tests.drivers.server import Server

SERVERS = 3


@dataclass(frozen=True, slots=True)
class Deployment:
    postgres: PostgresServer
    url: str
    """Of the database, for the product."""
    admin_url: str
    servers: list[Server]
    worker: Server
    """A server that no client is led to: it embeds, and runs jobs."""
    nginx: Nginx
    key: Key

    @property
    def headers(self) -> dict[str, str]:
        return {"Host": HOST, **self.key.headers}


@contextlib.contextmanager
def deployment(folder: Path) -> Iterator[Deployment]:
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer())
        databases = Databases(postgres.url)
        name = databases.create()
        url = databases.url(name)
        key = create_key(folder / "data0", store=url)
        environment = {
            "ZIBALDONE_STORE": url,
            "ZIBALDONE_EMBEDDER": "hashed",
            "ZIBALDONE_PUBLIC_URL": f"https://{HOST}",
        }
        *servers, worker = (
            stack.enter_context(Server(folder / f"data{number}", environment=environment))
            for number in range(SERVERS + 1)
        )
        nginx = stack.enter_context(Nginx(folder / "nginx", *servers))
        yield Deployment(postgres, url, databases.admin_url(name), servers, worker, nginx, key)

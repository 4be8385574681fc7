"""A server in a process of its own: started, measured, stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

_START_SECONDS_MAX = 30
_STOP_SECONDS_MAX = 20


class ServerProcess:
    """Any command that serves HTTP on the port it is given as `--port`."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.port = _free_port()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("ZIBALDONE_")
        }
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self._process = subprocess.Popen(
            [*map(str, command), "--port", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**kept, **(settings or {})},
            cwd=folder,
        )
        self._measured = psutil.Process(self._process.pid)
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        until_s = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < until_s:
            if self._process.poll() is not None:
                self._log.seek(0)
                raise RuntimeError(f"the server stopped: {self._log.read().decode()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"no server on the port after {_START_SECONDS_MAX} s")

    def cpu_seconds(self) -> float:
        """CPU the process has used, all its threads together."""
        return _cpu_seconds(self._measured)

    def resident_bytes(self) -> int:
        return int(self._measured.memory_info().rss)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class PostgresProcesses:
    """All processes of a PostgreSQL that runs on this machine; of another, nothing is counted."""

    def __init__(self, url: str) -> None:
        self._parent: psutil.Process | None = None
        with psycopg.connect(url) as raw, suppress(psutil.Error):
            parent = psutil.Process(raw.info.backend_pid).parent()
            if parent is not None and parent.name() == "postgres":
                self._parent = parent

    def cpu_seconds(self) -> float:
        """Processes that have ended are counted by their parent."""
        if self._parent is None:
            return 0.0
        own = self._parent.cpu_times()
        total: float = own.children_user + own.children_system
        for process in (self._parent, *self._parent.children()):
            with suppress(psutil.Error, OSError):
                total += _cpu_seconds(process)
        return total


def _cpu_seconds(process: psutil.Process) -> float:
    if sys.platform == "linux":
        # The kernel's CPU clock of another process, in nanoseconds; psutil reads the same number
        # from /proc in steps of 10 ms.
        return time.clock_gettime((~process.pid << 3) | 2)
    else:  # noqa: RET505 - type checkers know platforms only in this form
        times = process.cpu_times()
        return float(times.user + times.system)


def zibaldone(data: Path, *, embedder: str = "none", store: str = "") -> ServerProcess:
    """The product, as a user starts it; without a model unless one is measured.

    Embedding what a benchmark has just written would take the processor from what it measures.
    """
    command = (sys.executable, "-m", "zibaldone", "serve", "--data", data)
    settings = {"ZIBALDONE_EMBEDDER": embedder, **({"ZIBALDONE_STORE": store} if store else {})}
    return ServerProcess(command, folder=data.parent, settings=settings)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""Programs that tests need beside Python's, installed where that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

_FORGET_FAILURE_SECONDS = 3_600


def found_or_installed(program: str, package: str) -> str | None:
    """The path of a program. As root on Debian it is installed, by one of the test processes."""
    with (Path(tempfile.gettempdir()) / f"zibaldone-{program}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _found(program)
        if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
            if time.time() - _failed_at(lock) < _FORGET_FAILURE_SECONDS:
                return None
            found = _installed(program, package)
            if found is None:
                lock.truncate(0)
                lock.write(str(time.time()))
        return found


def _failed_at(lock: IO[str]) -> float:
    """When installing failed last: without a network each try takes minutes."""
    lock.seek(0)
    return float(lock.read() or 0)


def _installed(program: str, package: str) -> str | None:
    install = ["apt-get", "install", "-y", "--no-install-recommends", package]
    for command in (install, ["apt-get", "update"], install):
        subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if _found(program) is not None:
            break
    return _found(program)


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

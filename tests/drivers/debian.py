"""Programs that tests need and Debian has: installed first, where that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import IO

import pytest

_FORGET_FAILURE_SECONDS = 3_600


def debian_program(name: str, package: str) -> str:
    """The path of a program; the test is skipped where it cannot be had.

    As root on Debian the package is installed, by one of several test processes. A failure is kept
    for an hour. The variable TESTS_NGINX (for nginx) names another program; empty means that there
    is none.
    """
    chosen = os.environ.get(f"TESTS_{name.upper()}")
    path, why = _found_or_installed(name, package) if chosen is None else _chosen(chosen)
    if path is None:
        pytest.skip(f"{name} {why}; Debian: apt-get install {package}")
    return path


def _chosen(program: str) -> tuple[str | None, str]:
    return shutil.which(program), "is not installed"


@cache
def _found_or_installed(name: str, package: str) -> tuple[str | None, str]:
    """The path, or why there is none."""
    with (Path(tempfile.gettempdir()) / f"zibaldone-{name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := _found(name)) is not None:
            return found, ""
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            return None, "is not installed, and only root on Debian can do that here"
        if (failure := _recent_failure(lock)) is not None:
            return None, failure
        failure = _install(name, package)
        if failure:
            lock.truncate(0)
            lock.write(f"{time.time()}\n{failure}")
        return _found(name), failure


def _recent_failure(lock: IO[str]) -> str | None:
    """Why installing failed within the last hour: without a network each try takes minutes."""
    lock.seek(0)
    at_s, _, failure = lock.read().partition("\n")
    is_recent = time.time() - float(at_s or 0) < _FORGET_FAILURE_SECONDS
    return failure if is_recent else None


def _install(name: str, package: str) -> str:
    """What failed; empty if the program is there then."""
    install = ["apt-get", "install", "-y", "--no-install-recommends", package]
    said = ""
    for command in (install, ["apt-get", "update"], install):
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if _found(name) is not None:
            return ""
        said = done.stderr.strip().rpartition("\n")[2] or said
    return f"cannot be installed ({said})"


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

"""A command on a terminal: a pseudo-terminal of its own, with a width and with keys to press."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.drivers.server import COMMAND, clean_environment

_SECONDS_MAX = 60.0
CTRL_C = "\x03"


def _take_terminal() -> None:
    """In the child: the terminal sends it the signals of its keys."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(
        self,
        *arguments: str,
        data: Path,
        columns: int = 80,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdout_to: Path | None = None,
    ) -> None:
        """`stdout_to`: standard output goes into this file, the rest stays on the terminal."""
        self._master, child_end = pty.openpty()
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        output = child_end if stdout_to is None else os.open(stdout_to, os.O_WRONLY | os.O_CREAT)
        given = clean_environment({"TERM": "xterm", **(environment or {})}, data=data)
        for name in ("COLUMNS", "LINES"):  # the terminal itself says how wide it is
            given.pop(name, None)
        self._process = subprocess.Popen(
            [*COMMAND, "--data", str(data), *arguments],
            stdin=child_end,
            stdout=output,
            stderr=child_end,
            env=given,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - no threads in this process matter to it
        )
        for end in {child_end, output}:
            os.close(end)
        self._shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def shown(self) -> str:
        """What is on the screen so far."""
        return self._shown.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        until_s = time.monotonic() + _SECONDS_MAX
        while text not in self.shown:
            assert time.monotonic() < until_s, f"{text!r} never came:\n{self.shown}"
            assert self._read(), f"{text!r} never came:\n{self.shown}"

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Wait for the command's end; its exit code."""
        until_s = time.monotonic() + _SECONDS_MAX
        while self._read():
            assert time.monotonic() < until_s, f"it does not end:\n{self.shown}"
        return self._process.wait(timeout=_SECONDS_MAX)

    def _read(self) -> bool:
        """Whether there may be more to read."""
        ready, _, _ = select.select([self._master], [], [], 1.0)
        if not ready:
            return self._process.poll() is None
        try:
            part = os.read(self._master, 65_536)
        except OSError:  # the child's end is closed
            return False
        self._shown += part
        return bool(part)

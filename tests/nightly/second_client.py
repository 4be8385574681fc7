"""A second client in a process of its own, which notices when a server leaves it waiting.

Whether that is the server's fault is not plain on a busy machine. Of a wait counts what is left
after two things are taken off:

- the time this process itself waited for a core: a thread here sleeps for a moment again and
  again, and measures how late it wakes up (the control);
- whatever is more than the CPU time that the server used meanwhile: a server that computed for
  0.2 s did not make anybody wait for longer than that by computing.

A wait without such a reason (a lock, a lost wake-up) has no CPU time to show. It counts from
BLOCKED_SECONDS_MAX on, whoever had the cores.

    python -m tests.nightly.second_client [PORT PID [HEADERS]]

prints a line for each wait: when it began, its seconds, the seconds that count, the status. Without
a port only the control runs, and prints each time that it was late. It ends with its input.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

STALL_SECONDS_MAX = 1.0
BLOCKED_SECONDS_MAX = 10.0
_PROBE = "GET /documents/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
_EVERY_SECONDS = 0.1
_CONTROL_SECONDS = 0.02
_LATE_SECONDS_MIN = 0.05
_GIVE_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Wait:
    began_s: float
    """By the monotonic clock, which all processes of a machine share."""
    waited_s: float
    caused_s: float
    """Of them, by the server."""
    status: int
    """0 where there was no answer."""

    @property
    def is_stall(self) -> bool:
        return self.caused_s > STALL_SECONDS_MAX


@dataclass(slots=True)
class Late:
    """How late the control woke up: what everybody on this machine had to wait for a core."""

    _times: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=2_000))

    def add(self, at_s: float, late_s: float) -> None:
        self._times.append((at_s, late_s))

    def between(self, began_s: float, ended_s: float) -> float:
        """Seconds of that stretch in which the control should have run and did not."""
        return sum(
            max(0.0, min(at_s, ended_s) - max(at_s - late_s, began_s))
            for at_s, late_s in tuple(self._times)
            if late_s >= _LATE_SECONDS_MIN
        )


def caused(waited_s: float, late_s: float, busy_s: float) -> float:
    """Seconds of a wait that are the doing of who was waited for."""
    left_s = waited_s - late_s
    return left_s if left_s > BLOCKED_SECONDS_MAX else max(0.0, min(left_s, busy_s))


class SecondClient:
    """The process, from the side of whoever runs it."""

    def __init__(self, port: int, pid: int, headers: str = "", path: str = "notes/friday") -> None:
        self._is_client = bool(port)
        arguments = [str(port), str(pid), headers, path] if port else []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.nightly.second_client", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self.late = Late()
        self.waits: deque[Wait] = deque(maxlen=2_000)
        self.count = 0
        self.stalls: list[Wait] = []
        self.longest_s = 0.0
        self.statuses: dict[int, int] = {}

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            values = json.loads(line)
            if len(values) == 2:
                self.late.add(*values)
                continue
            wait = Wait(*values)
            self.waits.append(wait)
            self.count += 1
            self.statuses[wait.status] = self.statuses.get(wait.status, 0) + 1
            self.longest_s = max(self.longest_s, wait.caused_s)
            if wait.is_stall:
                self.stalls.append(wait)

    def has_asked_since(self, since_s: float) -> bool:
        """Whether a question that began after that has its answer."""
        return bool(self.waits) and self.waits[-1].began_s > since_s

    def worst_since(self, since_s: float) -> float:
        """The longest wait, by the server's doing, that did not end before that."""
        waits = tuple(self.waits)
        over = [wait for wait in waits if wait.began_s + wait.waited_s >= since_s]
        return max((wait.caused_s for wait in over), default=0.0)

    def settle(self) -> None:
        """Return when a question that begins now has its answer, so that no wait is missed."""
        now_s = time.monotonic()
        while self._is_client and not self.has_asked_since(now_s):
            if self._process.poll() is not None or time.monotonic() > now_s + _GIVE_UP_SECONDS:
                return
            time.sleep(_CONTROL_SECONDS)

    def line(self) -> str:
        return (
            f"second client: {self.count} questions, {len(self.stalls)} stalls over "
            f"{STALL_SECONDS_MAX:g} s, longest {self.longest_s * 1000:.0f} ms, "
            f"answers {self.statuses}"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.settle()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()


def control() -> SecondClient:
    """Only the control, for who watches an event loop of its own."""
    return SecondClient(0, 0)


def main(arguments: list[str]) -> None:
    threading.Thread(target=_end_with_input, daemon=True).start()
    late = Late()
    if not arguments:
        _watch_clock(late, is_told=True)
        return
    import psutil

    threading.Thread(target=_watch_clock, args=(late,), daemon=True).start()
    port, server = int(arguments[0]), psutil.Process(int(arguments[1]))
    probe = _PROBE.format(path=arguments[3], headers=arguments[2]).encode()
    while server.is_running():
        with contextlib.suppress(psutil.Error):
            cpu_before, began_s = server.cpu_times(), time.monotonic()
            status = _ask(port, probe)
            ended_s, cpu_after = time.monotonic(), server.cpu_times()
            time.sleep(2 * _CONTROL_SECONDS)  # the control has to say how late it was
            busy_s = sum(cpu_after[:2]) - sum(cpu_before[:2])
            waited_s = ended_s - began_s
            counts_s = caused(waited_s, late.between(began_s, ended_s), busy_s)
            _tell([began_s, waited_s, counts_s, status])
        time.sleep(_EVERY_SECONDS)


def _watch_clock(late: Late, *, is_told: bool = False) -> None:
    while True:
        began_s = time.monotonic()
        time.sleep(_CONTROL_SECONDS)
        now_s = time.monotonic()
        late_s = now_s - began_s - _CONTROL_SECONDS
        if late_s >= _LATE_SECONDS_MIN:
            late.add(now_s, late_s)
            if is_told:
                _tell([now_s, late_s])


def _ask(port: int, probe: bytes) -> int:
    """The status of the answer, all of which is read."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_GIVE_UP_SECONDS) as connection:
            connection.sendall(probe)
            head = answer = connection.recv(65_536)
            while answer:
                answer = connection.recv(65_536)
    except OSError:
        return 0
    return int(head[9:12]) if head[9:12].isdigit() else 0


def _tell(values: list[float]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.argv[1:])

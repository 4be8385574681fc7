"""A converter process as its parent sees it: started, asked, killed.

Each child has a thread of its own, which starts it and waits on its pipes, so that no event loop
ever does. Linux kills a child when the thread that started it ends; this one lives as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, Any

from zibaldone.ingest.frames import FrameError, read_frame, write_frame

WORKER = "zibaldone.ingest.worker"

_KEPT_VARIABLES = frozenset({"LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT"})
"""All that the child gets of the environment: keys and passwords stay with the parent."""

_END_SECONDS_MAX = 1.0


class ChildEnded(Exception):
    """The child ended before it answered."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code
        """Negative: the number of the signal that ended it."""


@dataclass(frozen=True, slots=True)
class Request:
    head: dict[str, Any]
    data: bytes
    answer_bytes_max: int


Answer = tuple[dict[str, Any], bytes]


class Child:
    def __init__(self, idle_seconds_max: float) -> None:
        self.answered = 0
        self._idle_seconds_max = idle_seconds_max
        self._requests: SimpleQueue[tuple[Request, Future[Answer]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="zibaldone-convert", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_ended(self) -> bool:
        return self._is_ended

    def ask(self, request: Request) -> Future[Answer]:
        """Hand over one request; the answer, or ChildEnded, comes from the child's thread."""
        answer: Future[Answer] = Future()
        with self._lock:
            if self._is_ended:
                answer.set_exception(ChildEnded(0))
            else:
                self._requests.put((request, answer))
        return answer

    def end(self) -> None:
        """Let the child end once it has answered; never waits."""
        with self._lock:
            self._is_ended = True
        self._requests.put(None)

    def kill(self) -> None:
        """End the child at once, whatever it does; never waits."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                with suppress(OSError):
                    self._process.kill()
        self._requests.put(None)

    def join(self) -> None:
        self._thread.join(_END_SECONDS_MAX)

    def _run(self) -> None:
        try:
            process = self._start()
        except OSError as problem:
            self._refuse_all(problem)
            return
        try:
            while (task := self._next_task()) is not None:
                self._serve(process, *task)
        finally:
            _end(process)
            self._refuse_all(ChildEnded(process.returncode))

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - our own module
            # -P: nothing is imported from the current folder; -B: nothing is written.
            [sys.executable, "-P", "-B", "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
        )
        with self._lock:
            self._process = process
            if self._is_ended:
                process.kill()
        return process

    def _next_task(self) -> tuple[Request, Future[Answer]] | None:
        try:
            return self._requests.get(timeout=self._idle_seconds_max)
        except Empty:
            with self._lock:
                if self._requests.empty():
                    self._is_ended = True
                    return None
            return self._requests.get()

    def _serve(
        self, process: subprocess.Popen[bytes], request: Request, answer: Future[Answer]
    ) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            write_frame(_pipe(process.stdin), request.head, request.data)
            frame = read_frame(_pipe(process.stdout), request.answer_bytes_max)
        except (OSError, ValueError, FrameError):
            frame = None
        if frame is not None:
            self.answered += 1
            answer.set_result(frame)
            return
        _end(process)
        self.end()
        answer.set_exception(ChildEnded(process.returncode))

    def _refuse_all(self, problem: Exception) -> None:
        with self._lock:
            self._is_ended = True
        while True:
            try:
                task = self._requests.get_nowait()
            except Empty:
                return
            if task is not None and task[1].set_running_or_notify_cancel():
                task[1].set_exception(problem)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.upper() in _KEPT_VARIABLES}
    # The child imports what the parent would, wherever that was installed or started from.
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _pipe(file: IO[bytes] | None) -> IO[bytes]:
    assert file is not None  # noqa: S101 - Popen was told to make both
    return file


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes, on which an idle child ends by itself, and wait; kill it if it does not."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    try:
        process.wait(_END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""Ctrl-C, at any moment: never a traceback.

While modules are imported, and after the work is done, it ends the process at once. While a command
runs it raises KeyboardInterrupt, so that what was begun ends in order. Imported before all others:
it imports next to nothing itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

EXIT_CODE = 130
"""Of a command that Ctrl-C ended, as shells have it."""

_signals: list[int] = []
"""The file descriptors that become readable when a signal comes: one within `orderly`."""


def _quit(*_: object) -> None:
    try:
        os.write(2, b"\nInterrupted.\n")
    finally:
        os._exit(EXIT_CODE)


def quit_at_once() -> None:
    """From now on Ctrl-C ends the process, except within `orderly`."""
    # A process in the background of a script ignores Ctrl-C: leave that.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quit)
        sys.unraisablehook = _not_raised


def _not_raised(unraisable: sys.UnraisableHookArgs) -> None:
    """Python prints and forgets what a callback raises; Ctrl-C may come in one."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _quit()
    sys.__unraisablehook__(unraisable)


@contextmanager
def orderly() -> Iterator[Callable[[], bool]]:
    """Ctrl-C raises KeyboardInterrupt here. The function says whether it came."""
    if signal.getsignal(signal.SIGINT) is not _quit:
        yield lambda: False
        return
    with _heard() as came:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield came
        finally:
            signal.signal(signal.SIGINT, _quit)


def wait_readable(descriptor: int) -> None:
    """Wait until a read will not block. A plain read misses a Ctrl-C that comes in the moment
    between Python's look at its signals and the call of the system, and then waits for ever."""
    if os.name != "posix":  # `select` knows only sockets there
        return
    ready, _, _ = select.select([descriptor, *_signals], [], [])
    if descriptor not in ready:
        raise KeyboardInterrupt


@contextmanager
def _heard() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT came, whatever became of its KeyboardInterrupt: a library in C or Rust may
    turn it into an error of its own. A handler cannot tell: asyncio ends its tasks in order only
    where the default one is installed."""
    if os.name != "posix":
        yield lambda: False
        return
    reader, writer = os.pipe()
    seen = bytearray()

    def came() -> bool:
        with suppress(BlockingIOError):
            seen.extend(os.read(reader, 4096))
        return signal.SIGINT in seen

    for end in (reader, writer):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _signals.append(reader)
    try:
        yield came
    finally:
        # Whoever else has set it meanwhile has reset it to nothing.
        signal.set_wakeup_fd(before)
        _signals.remove(reader)
        os.close(reader)
        os.close(writer)

"""Ctrl-C, at any moment: never a traceback.

While modules are imported, and after the work is done, it ends the process at once. While a command
runs it raises KeyboardInterrupt, so that what was begun ends in order. Imported before all others:
it imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_CODE = 130
"""Of a command that Ctrl-C ended, as shells have it."""


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
def orderly() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here."""
    if signal.getsignal(signal.SIGINT) is not _quit:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _quit)

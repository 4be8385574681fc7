"""The converter process: files arrive on standard input, their texts leave on standard output.

Files come from strangers and parsers have bugs, so this process limits its own memory, CPU time
and files, holds no secrets, and ends with its parent. `ingest/child.py` is the parent's side.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

from zibaldone.errors import InvalidArgument, ZibaldoneError
from zibaldone.ingest.extract import extract
from zibaldone.ingest.frames import FrameError, read_frame, write_frame
from zibaldone.ingest.refusals import OUT_OF_MEMORY_EXIT_CODE, out_of_memory, unreadable
from zibaldone.limits import CONVERT_FILES_MAX, CONVERT_MEMORY_BYTES_MAX

try:
    import resource
except ImportError:  # Windows, where only the parent's clock limits a conversion
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG = 1
_NICENESS = 10
"""The server, for which everybody waits, goes before a conversion."""
_CPU_SHARE = 0.6
"""Of a conversion's time it may compute this much: one that takes more is refused for what the
file is. The rest is for waiting; a conversion that waited too long may succeed another time."""
_PAGES_SHARE = 0.5
"""A conversion that looks at the clock ends before it is killed, and can say how far it came."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    input_file, output_file = _take_pipes()
    _end_with_parent()
    _limit()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        serve(input_file, output_file)
    except MemoryError:
        os._exit(OUT_OF_MEMORY_EXIT_CODE)


def serve(input_file: BinaryIO, output_file: BinaryIO) -> None:
    """Answer requests until the parent closes the pipe."""
    while True:
        try:
            request = read_frame(input_file, sys.maxsize)
        except FrameError:
            return  # the parent died while it was writing
        if request is None:
            return
        head, data = request
        _limit_cpu(head["seconds_max"] * _CPU_SHARE)
        answer, text = _answer(head, data)
        del request, data
        write_frame(output_file, answer, text)


def _answer(head: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        extracted = extract(
            data,
            name=head["name"],
            mime=head["mime"],
            cpu_seconds_max=head["seconds_max"] * _PAGES_SHARE,
        )
        text = extracted.text.encode(errors="surrogatepass")
        if len(text) > head["text_bytes_max"]:
            raise InvalidArgument(
                f"The file's text has {len(text)} bytes; a document holds"
                f" {head['text_bytes_max']} at most. Split the file.",
                field="source",
                bytes_max=head["text_bytes_max"],
            )
    except ZibaldoneError as error:
        return _refusal(error), b""
    except MemoryError:
        return {**_refusal(out_of_memory()), "is_last": True}, b""
    except Exception as error:
        return _refusal(unreadable(type(error).__name__)), b""
    return {"title": extracted.title, "mime": extracted.mime}, text


def _refusal(error: ZibaldoneError) -> dict[str, Any]:
    return {"error": error.code, "message": error.message, "details": dict(error.details)}


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes, out of reach of whatever prints to standard output or error."""
    input_file = os.fdopen(os.dup(0), "rb")
    output_file = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    return input_file, output_file


def _end_with_parent() -> None:
    """On Linux at once; elsewhere when the pipe ends or the CPU limit is reached."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # a C library without prctl
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _limit() -> None:
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    _set_limit("RLIMIT_AS", CONVERT_MEMORY_BYTES_MAX)
    _set_limit("RLIMIT_NOFILE", CONVERT_FILES_MAX)
    _set_limit("RLIMIT_FSIZE", 0)
    _set_limit("RLIMIT_CORE", 0)
    _set_limit("RLIMIT_NPROC", 0)


def _limit_cpu(seconds: float) -> None:
    """The limit counts from the start of the process, so each conversion raises it."""
    _set_limit("RLIMIT_CPU", math.ceil(time.process_time() + seconds))


def _set_limit(name: str, value: int) -> None:
    if resource is None or not hasattr(resource, name):
        return
    limit = getattr(resource, name)
    _, hard = resource.getrlimit(limit)
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(ValueError, OSError):  # macOS knows RLIMIT_AS but does not take every value
        resource.setrlimit(limit, (soft, hard))


if __name__ == "__main__":
    main()

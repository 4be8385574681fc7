"""The converter process: files arrive on standard input, their texts leave on standard output.

Files come from strangers and parsers have bugs, so this process limits its own memory, CPU time
and files, holds no secrets, and ends with its parent. `ingest/child.py` is the parent's side.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, BinaryIO

from zibaldone.errors import InvalidArgument, PayloadTooLarge, ZibaldoneError
from zibaldone.ingest.extract import extract
from zibaldone.ingest.frames import FrameError, read_frame, write_frame
from zibaldone.limits import CONVERT_FILES_MAX, CONVERT_MEMORY_BYTES_MAX, MIB

OUT_OF_MEMORY_EXIT_CODE = 3

_PR_SET_PDEATHSIG = 1
_SECONDS_SHARE = 0.9
"""A conversion that looks at the clock ends before it is killed, and can say how far it came."""


def main() -> None:
    input_file, output_file = _take_pipes()
    _end_with_parent()
    resource = _resource_module()
    if resource is not None:
        _limit(resource)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        serve(input_file, output_file, resource)
    except MemoryError:
        os._exit(OUT_OF_MEMORY_EXIT_CODE)


def serve(input_file: BinaryIO, output_file: BinaryIO, resource: ModuleType | None) -> None:
    """Answer requests until the parent closes the pipe."""
    while True:
        try:
            request = read_frame(input_file, sys.maxsize)
        except FrameError:
            return  # the parent died while it was writing
        if request is None:
            return
        head, data = request
        if resource is not None:
            _limit_cpu(resource, head["seconds_max"])
        answer, text = _answer(head, data)
        del request, data
        write_frame(output_file, answer, text)


def _answer(head: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        extracted = extract(
            data,
            name=head["name"],
            mime=head["mime"],
            seconds_max=head["seconds_max"] * _SECONDS_SHARE,
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


def out_of_memory() -> PayloadTooLarge:
    return PayloadTooLarge(
        f"Converting the file takes more than {CONVERT_MEMORY_BYTES_MAX // MIB} MiB of memory."
        " Split it, or save it as text or Markdown.",
        memory_bytes_max=CONVERT_MEMORY_BYTES_MAX,
    )


def unreadable(reason: str) -> InvalidArgument:
    return InvalidArgument(
        f"The file cannot be converted: the converter failed ({reason})."
        " Save it as text or Markdown.",
        field="source",
        reason=reason,
    )


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
    try:
        ctypes = import_module("ctypes")
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # a Python without ctypes: the pipe's end has to do


def _resource_module() -> ModuleType | None:
    """None on Windows, where only the parent's clock limits a conversion."""
    try:
        return import_module("resource")
    except ImportError:
        return None


def _limit(resource: Any) -> None:
    _set_limit(resource, "RLIMIT_AS", CONVERT_MEMORY_BYTES_MAX)
    _set_limit(resource, "RLIMIT_NOFILE", CONVERT_FILES_MAX)
    _set_limit(resource, "RLIMIT_FSIZE", 0)
    _set_limit(resource, "RLIMIT_CORE", 0)
    _set_limit(resource, "RLIMIT_NPROC", 0)


def _limit_cpu(resource: Any, seconds: float) -> None:
    """The limit counts from the start of the process, so each conversion raises it."""
    _set_limit(resource, "RLIMIT_CPU", math.ceil(time.process_time() + seconds) + 1)


def _set_limit(resource: Any, name: str, value: int) -> None:
    if not hasattr(resource, name):
        return
    limit = getattr(resource, name)
    _, hard = resource.getrlimit(limit)
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(ValueError, OSError):  # macOS knows RLIMIT_AS but does not take every value
        resource.setrlimit(limit, (soft, hard))


if __name__ == "__main__":
    main()

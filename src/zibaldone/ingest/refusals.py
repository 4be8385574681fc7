"""What a caller is told when a conversion fails, said by the child or by its parent."""

from __future__ import annotations

from zibaldone.errors import InvalidArgument, LimitExceeded, PayloadTooLarge
from zibaldone.limits import CONVERT_MEMORY_BYTES_MAX, MIB

OUT_OF_MEMORY_EXIT_CODE = 3


def out_of_memory() -> PayloadTooLarge:
    return PayloadTooLarge(
        f"Converting the file takes more than {CONVERT_MEMORY_BYTES_MAX // MIB} MiB of memory."
        " Split it, or save it as text or Markdown.",
        memory_bytes_max=CONVERT_MEMORY_BYTES_MAX,
    )


def too_much_work(seconds_max: float) -> LimitExceeded:
    return LimitExceeded(
        f"Converting the file takes too much work for {seconds_max:g} seconds. Split it, or save"
        " it as text or Markdown.",
        seconds_max=seconds_max,
    )


def unreadable(reason: str) -> InvalidArgument:
    return InvalidArgument(
        f"The file cannot be converted: the converter failed ({reason})."
        " Save it as text or Markdown.",
        field="source",
        reason=reason,
    )

"""Files of a call by their paths, as an assistant names and reads them."""

from __future__ import annotations

from collections.abc import Mapping

from zibaldone.errors import Ambiguous, InvalidArgument, NotFound
from zibaldone.find.parse import checked_text
from zibaldone.limits import ECHO_CHARS_MAX, OVERFLOW_HITS_MAX, READ_CHARS_MAX, READ_LINES_MAX
from zibaldone.pack.file_index import IndexableFile

_PATHS_SHOWN = 5


def check_search(query: str, k: int) -> None:
    """Raise InvalidArgument or LimitExceeded if it cannot be searched for."""
    checked_text(query)
    if not 1 <= k <= OVERFLOW_HITS_MAX:
        raise InvalidArgument(f"k is {k}; it must be between 1 and {OVERFLOW_HITS_MAX}.", field="k")


def file_number(path: str, numbers: Mapping[str, int]) -> int:
    """Models shorten paths; one that fits a single file is understood."""
    wanted = path.strip().replace("\\", "/").removeprefix("./")
    for exact in (path, wanted):
        if exact in numbers:
            return numbers[exact]
    ending = "/" + wanted.lstrip("/")
    fitting = [known for known in numbers if f"/{known}".endswith(ending)]
    if len(fitting) == 1:
        return numbers[fitting[0]]
    echo = path[:ECHO_CHARS_MAX]
    if fitting:
        shown = ", ".join(sorted(fitting)[:_PATHS_SHOWN])
        raise Ambiguous(
            f"{len(fitting)} files end with {echo!r}: {shown}. Give the whole path.",
            count=len(fitting),
        )
    raise NotFound(f"There is no file {echo!r} in the store; search for it first.", path=echo)


def read_lines(file: IndexableFile, from_line: int | None, to_line: int | None) -> str:
    """Lines of a file, counted from 1, or all of it; a last line says if more follow."""
    first = 1 if from_line is None else from_line
    if first < 1 or (to_line is not None and to_line < first):
        raise InvalidArgument(
            f"Lines {from_line} to {to_line} are no range; lines count from 1.", field="from_line"
        )
    try:
        text = file.load()
    except (OSError, ValueError):
        raise NotFound(f"The file {file.path} cannot be read any more.", path=file.path) from None
    lines = text.count("\n") + (not text.endswith("\n"))
    if first > max(lines, 1):
        raise InvalidArgument(
            f"{file.path} has {lines} lines; there is no line {first}.", field="from_line"
        )
    start = 0
    for _ in range(first - 1):
        start = text.find("\n", start) + 1
    wanted = lines if to_line is None else to_line - first + 1
    end, count = start, 0
    while count < min(wanted, READ_LINES_MAX) and end < len(text) and end - start < READ_CHARS_MAX:
        end = text.find("\n", end) + 1 or len(text)
        count += 1
    shown = text[start : min(end, start + READ_CHARS_MAX)]
    is_whole = len(shown) == end - start
    if is_whole and (count == wanted or end == len(text)):
        return shown
    next_line = first + max(count - (not is_whole), 1)
    return f"{shown}\n[… cut here: {lines} lines in all; read on with from_line={next_line}]"

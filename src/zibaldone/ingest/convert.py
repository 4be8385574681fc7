"""Convert a file to text without risk to the server: in a child process that can be killed.

A conversion that takes too long is killed, as is one that nobody waits for any more. At most
CONVERT_PROCESSES_MAX run at once; further ones wait their turn, within their own time. Turns are
shared fairly by caller (`access.turns`): one that has none running gets an extra process.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping

from zibaldone import errors
from zibaldone.access.turns import TaskTurns, Turns
from zibaldone.errors import DeadlineExceeded, Internal, PayloadTooLarge, ZibaldoneError
from zibaldone.ingest.child import Answer, Child, ChildEnded, Request
from zibaldone.ingest.extract import extract, is_plain_text
from zibaldone.ingest.refusals import (
    OUT_OF_MEMORY_EXIT_CODE,
    out_of_memory,
    too_much_work,
    unreadable,
)
from zibaldone.limits import (
    CONVERT_AT_ONCE_BYTES_MAX,
    CONVERT_IDLE_SECONDS_MAX,
    CONVERT_INLINE_BYTES_MAX,
    CONVERT_PROCESSES_EXTRA,
    CONVERT_PROCESSES_MAX,
    CONVERT_USES_MAX,
    MIB,
)
from zibaldone.model.extracted import Extracted

_ERRORS: Mapping[str, type[ZibaldoneError]] = {
    error.code: error
    for error in (
        errors.InvalidArgument,
        errors.LimitExceeded,
        errors.NotConfigured,
        errors.PayloadTooLarge,
    )
}
_OUT_OF_CPU_TIME = -getattr(signal, "SIGXCPU", 0) or None
"""The exit code of a child that reached its limit; None where there is no such limit."""
_LABEL_CHARS_MAX = 1_000
_TRIES_MAX = 2
"""A child may be ended from outside, or by its own idleness, just when it is asked."""


class Converter:
    def __init__(self, *, bytes_max: int, text_bytes_max: int, seconds_max: float) -> None:
        self._bytes_max = bytes_max
        self._text_bytes_max = text_bytes_max
        self._seconds_max = seconds_max
        turns: Turns[asyncio.Future[None]] = Turns(
            CONVERT_PROCESSES_MAX,
            per_share=CONVERT_PROCESSES_MAX,
            extra=CONVERT_PROCESSES_EXTRA,
        )
        self._turns = TaskTurns(turns)
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._is_closed = False

    async def convert(self, data: bytes, *, name: str, mime: str | None = None) -> Extracted:
        """The text of a file; `mime` may be a whole Content-Type and counts for more than bytes."""
        if len(data) > self._bytes_max:
            raise PayloadTooLarge(
                f"The file has more than {self._bytes_max / MIB:g} MiB.", bytes_max=self._bytes_max
            )
        name, mime = name[-_LABEL_CHARS_MAX:], mime and mime[:_LABEL_CHARS_MAX]
        if len(data) <= CONVERT_INLINE_BYTES_MAX and is_plain_text(data, name=name, mime=mime):
            if len(data) <= CONVERT_AT_ONCE_BYTES_MAX:
                return extract(data, name=name, mime=mime)
            return await asyncio.to_thread(extract, data, name=name, mime=mime)
        head = {
            "name": name,
            "mime": mime,
            "seconds_max": self._seconds_max,
            "text_bytes_max": self._text_bytes_max,
        }
        try:
            async with asyncio.timeout(self._seconds_max), self._turns:
                answer, text = await self._ask(Request(head, data, self._text_bytes_max))
        except TimeoutError:
            raise self._too_slow() from None
        if "error" in answer:
            raise _ERRORS[answer["error"]](answer["message"], **answer["details"])
        return Extracted(text.decode(errors="surrogatepass"), answer["title"], answer["mime"])

    def close(self) -> None:
        """Kill every child; conversions that still run fail."""
        self._is_closed = True
        children = (*self._idle, *self._busy)
        self._idle.clear()
        for child in children:
            child.kill()
        for child in children:
            child.join()

    async def _ask(self, request: Request) -> Answer:
        for tries_left in reversed(range(_TRIES_MAX)):
            child = self._take()
            try:
                answer = await asyncio.wrap_future(child.ask(request))
            except ChildEnded as ended:
                if not tries_left or ended.exit_code == _OUT_OF_CPU_TIME:
                    raise self._why(ended.exit_code) from None
            except BaseException:
                child.kill()  # nobody waits for the answer any more
                raise
            else:
                self._give_back(child, is_last=answer[0].get("is_last", False))
                return answer
            finally:
                self._busy.discard(child)
        raise AssertionError("not reached")

    def _take(self) -> Child:
        if self._is_closed:
            raise Internal("The conversion was stopped: the server is shutting down.")
        while self._idle:
            child = self._idle.pop()
            if not child.is_ended:
                break
        else:
            child = Child(CONVERT_IDLE_SECONDS_MAX)
        self._busy.add(child)
        return child

    def _give_back(self, child: Child, *, is_last: bool) -> None:
        if is_last or child.answered >= CONVERT_USES_MAX:
            child.end()
        else:
            self._idle.append(child)

    def _why(self, exit_code: int) -> Exception:
        if exit_code == OUT_OF_MEMORY_EXIT_CODE:
            return out_of_memory()
        if exit_code >= 0:
            # Not the file's doing: the log has what the child said when it started.
            return RuntimeError(f"the converter process ended with exit code {exit_code}")
        if exit_code == _OUT_OF_CPU_TIME:
            return too_much_work(self._seconds_max)
        return unreadable(_signal_name(-exit_code))

    def _too_slow(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"The file was not converted within {self._seconds_max:g} seconds. Split it, or save"
            " it as text or Markdown.",
            seconds_max=self._seconds_max,
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

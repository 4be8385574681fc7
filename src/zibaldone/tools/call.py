"""Every call of a tool: permission → arguments → deadline → handler → metrics and audit log.

MCP tools and resources, REST and the command line all call tools through `call_tool`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from itertools import islice
from typing import Any

import orjson
from pydantic import ValidationError

from zibaldone.access.decide import require_effect, require_tool_of_profiles
from zibaldone.access.presence import CALLERS
from zibaldone.access.share import SHARE
from zibaldone.errors import (
    DeadlineExceeded,
    Forbidden,
    Internal,
    InvalidArgument,
    NotFound,
    PayloadTooLarge,
    ZibaldoneError,
)
from zibaldone.jobs import manage
from zibaldone.keep.nearest import explained
from zibaldone.limits import DOCUMENT_ID_BYTES_MAX, ECHO_CHARS_MAX, NEAR_PATHS_SECONDS_MAX
from zibaldone.model.job import Job
from zibaldone.store.port import end_if_cancelled
from zibaldone.text import normalize
from zibaldone.tools import metrics
from zibaldone.tools.argument_names import (
    Place,
    names_at,
    names_of,
    nearest,
    unknown_places,
)
from zibaldone.tools.spec import A, AnyTool, Arguments, Call, R, ToolSpec

_log = logging.getLogger("zibaldone.tools")
_audit = logging.getLogger("zibaldone.audit")

_PLACE_PARTS_MAX = 20
"""Arguments are not nested half as deep."""

_PROBLEMS_MAX = 10
"""Of the arguments of one call that are described."""

_NESTED = (dict, list)

_UNKNOWN_NAME = "extra_forbidden"
_NO_WHOLE_NUMBER = "int_type"
"""Pydantic's words for what is wrong."""

_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)

_MENDED_MAX = 100
"""Numbers of one call that are read from text."""


async def call_tool(
    tool: ToolSpec[A, R], call: Call, arguments: dict[str, Any], *, from_text: bool = False
) -> R:
    """Answer the call, or raise a ZibaldoneError; nothing else comes out.

    `from_text`: the arguments come from a URL, where numbers and booleans are written as text.
    """
    return await _run(tool, tool.handler, call, arguments, from_text=from_text)


async def start_job(tool: ToolSpec[A, Any], call: Call, arguments: dict[str, Any]) -> Job:
    """Check the call as `call_tool` does, and queue the tool's job instead of its answer.

    The job is stored when this returns, and belongs to the caller.
    """

    async def handler(call: Call, given: A) -> Job:
        if tool.job is None:
            raise Internal(f"{tool.name} has no job.")
        job, key_id = tool.job(call, given), call.principal.key_id
        added = await call.runtime.store.write(
            call.principal.tenant, lambda writer: manage.add_own(writer, job, key_id)
        )
        call.runtime.wake()
        return added

    return await _run(tool, handler, call, arguments)


async def _run(
    tool: ToolSpec[A, Any],
    handler: Callable[[Call, A], Coroutine[Any, Any, R]],
    call: Call,
    arguments: dict[str, Any],
    *,
    from_text: bool = False,
) -> R:
    started_s = time.perf_counter()
    outcome = "ok"
    shared = SHARE.set(call.principal.key_id)
    CALLERS.note(call.principal.key_id)
    try:
        require_tool(call, tool)
        _require_size(call, tool)
        checked = validate(tool.arguments, arguments, strict=not from_text)
        if tool.document is not None and (path := tool.document(checked)) is not None:
            call.require_document(normalize.document_id(path))
        seconds_max = _seconds_max(call, tool)
        answer = await _within(seconds_max, handler(call, checked))
        end_if_cancelled()  # unless it was for the deadline, which is told otherwise
        if tool.effect != "read":
            call.runtime.wake()
        return answer
    except TimeoutError:
        outcome = DeadlineExceeded.code
        raise DeadlineExceeded(_too_slow(tool, seconds_max)) from None
    except NotFound as error:
        outcome = error.code
        raise await _explained(call, error) from None
    except ZibaldoneError as error:
        outcome = error.code
        raise
    except asyncio.CancelledError:
        outcome = "CANCELLED"  # by its caller; the audit table tells whether a write got through
        raise
    except Exception as problem:
        outcome = Internal.code
        _log.exception("%s failed, request %s", tool.name, call.request_id)
        raise Internal(
            f"{tool.name} failed; the server's log has the reason under this request id.",
            request_id=call.request_id,
        ) from problem
    finally:
        SHARE.reset(shared)
        metrics.observe(tool.name, outcome, time.perf_counter() - started_s)
        if tool.effect != "read":
            _log_change(tool, call, arguments, outcome)


async def _explained(call: Call, error: NotFound) -> NotFound:
    """The error about a missing document, with what became of it or what may have been meant."""
    if "document_id" not in error.details or "near" in error.details:
        return error
    with contextlib.suppress(ZibaldoneError):
        return await call.runtime.store.read(
            call.principal.tenant,
            lambda reader: explained(reader, error),
            seconds_max=NEAR_PATHS_SECONDS_MAX,
        )
    return error


def _too_slow(tool: AnyTool, seconds_max: float) -> str:
    message = f"{tool.name} took longer than {seconds_max:.3g} s."
    # One document is one transaction, and a write that has begun is awaited beyond the deadline.
    is_one_write = tool.document is not None and tool.effect != "read"
    return f"{message} Nothing was stored." if is_one_write else message


async def _within(seconds_max: float, work: Coroutine[Any, Any, R]) -> R:
    """Await `work`; TimeoutError once it has waited for too long.

    Many calls are answered without ever waiting. They need no timer, which would cost as much as
    checking their arguments.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        answer: R = done.value
        return answer
    async with asyncio.timeout(seconds_max):
        return await resumed(work, waits_for)


@types.coroutine
def resumed(work: Coroutine[Any, Any, R], waits_for: Any) -> Generator[Any, Any, R]:
    """The rest of a coroutine that was started by hand and waits for something."""
    while True:
        try:
            try:
                value = yield waits_for
            except BaseException as problem:
                waits_for = work.throw(problem)
            else:
                waits_for = work.send(value)
        except StopIteration as done:
            answer: R = done.value
            return answer


def require_tool(call: Call, tool: AnyTool) -> None:
    """Raise unless the caller may use this tool, whatever its arguments.

    `call_tool` asks it first. A transport may ask before, to refuse in its own way.
    """
    if tool.is_local and not call.is_operator:
        raise Forbidden(f"{tool.name} is for the operator, on the server's own command line.")
    require_tool_of_profiles(call.principal, tool.name)
    require_effect(call.principal, tool.effect)


def _require_size(call: Call, tool: AnyTool) -> None:
    """Few tools need requests of megabytes; the others are not even validated with one."""
    bytes_max = tool.request_bytes_max
    if bytes_max is not None and call.request_bytes > bytes_max:
        raise PayloadTooLarge(
            f"A request to {tool.name} may have {bytes_max} bytes; this one has "
            f"{call.request_bytes}.",
            bytes_max=bytes_max,
        )


def _seconds_max(call: Call, tool: AnyTool) -> float:
    """The tool's own time, or what is left of the batch that the call is part of."""
    limits = call.runtime.limits
    own = tool.seconds_max
    seconds_max = own(limits) if callable(own) else own or limits.tool_seconds_max
    if call.deadline_s is None:
        return seconds_max
    left_s = call.deadline_s - time.monotonic()
    if left_s <= 0:
        raise DeadlineExceeded(
            f"The batch took longer than {limits.tool_seconds_max:g} s; {tool.name} was not run."
        )
    return min(seconds_max, left_s)


def validate(model: type[A], arguments: dict[str, Any], *, strict: bool = True) -> A:
    if _may_have_many_names(arguments):
        unknown = list(islice(unknown_places(names_of(model), arguments), _PROBLEMS_MAX))
        if len(unknown) == _PROBLEMS_MAX:
            raise _invalid_argument(model, ((place, _UNKNOWN_NAME, "") for place in unknown))
    try:
        return model.model_validate(arguments, strict=strict)
    except ValidationError as problem:
        reasons = _reasons(problem)
    if strict and (mended := _with_whole_numbers(arguments, reasons)) is not None:
        try:
            return model.model_validate(mended, strict=True)
        except ValidationError as problem:
            reasons = _reasons(problem)
    raise _invalid_argument(model, reasons)


_Reason = tuple[Place, str, str]
"""Where, what kind of problem, and in words."""


def _reasons(problem: ValidationError) -> list[_Reason]:
    errors = problem.errors(include_url=False, include_input=False, include_context=False)
    return [(error["loc"], error["type"], error["msg"]) for error in errors]


def _with_whole_numbers(
    arguments: dict[str, Any], reasons: Sequence[_Reason]
) -> dict[str, Any] | None:
    """The arguments with "5" and 5.0 as 5 where a whole number is wanted; None: there is none.

    Models write numbers so. Anything else stays as it is, and is refused.
    """
    mended: Any = arguments
    places = [place for place, kind, _ in reasons if kind == _NO_WHOLE_NUMBER]
    for place in places[:_MENDED_MAX]:
        mended = _mended(mended, place)
    return None if mended is arguments else mended


def _mended(value: Any, place: Place) -> Any:
    """A copy with the number at the place, or the value itself if there is none."""
    if not place:
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            return int(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value
    key = place[0]
    if not isinstance(value, _NESTED) or not (
        key in value if isinstance(value, dict) else isinstance(key, int) and key < len(value)
    ):
        return value
    inner = _mended(value[key], place[1:])  # type: ignore[index]
    if inner is value[key]:  # type: ignore[index]
        return value
    copied = value.copy()
    copied[key] = inner  # type: ignore[index]
    return copied


def _may_have_many_names(arguments: dict[str, Any]) -> bool:
    """False for most calls, which need no look at their names before pydantic's."""
    if len(arguments) >= _PROBLEMS_MAX:
        return True
    for value in arguments.values():  # noqa: SIM110 - a generator would cost more than the look
        if type(value) in _NESTED:
            return True
    return False


def _invalid_argument(model: type[Arguments], reasons: Iterable[_Reason]) -> InvalidArgument:
    problems = []
    valid: tuple[str, ...] = ()
    for place, kind, words in islice(reasons, _PROBLEMS_MAX):
        why = words
        if kind == _UNKNOWN_NAME:
            names = names_at(names_of(model), place)
            valid = valid or names.listed
            meant = nearest(names, str(place[-1]))
            why = "unknown argument" + ("" if meant is None else f"; did you mean {meant!r}?")
        problems.append({"field": _field(place) or "arguments", "why": why})
    first = problems[0]
    details: dict[str, Any] = {"field": first["field"], "problems": problems}
    message = f"{first['field']}: {first['why']}"
    if valid:
        details["valid"] = list(valid)
        message += (
            f" Valid: {', '.join(valid)}." if "?" in message else f". Valid: {', '.join(valid)}."
        )
    return InvalidArgument(message, **details)


def _field(place: tuple[int | str, ...]) -> str:
    """Where in the arguments; an unknown key is the caller's, and may be as long as a request."""
    name = ".".join(str(part)[:ECHO_CHARS_MAX] for part in place[:_PLACE_PARTS_MAX])
    return name if len(name) <= ECHO_CHARS_MAX else f"{name[:ECHO_CHARS_MAX]}\u2026"


def _log_change(tool: AnyTool, call: Call, arguments: dict[str, Any], outcome: str) -> None:
    """One line for each attempt to change something: names and outcome, never content."""
    if not _audit.isEnabledFor(logging.INFO):
        return
    path = arguments.get("path") or arguments.get("document_id") or ""
    line = {
        "key": call.principal.key_id,
        "namespace": call.principal.tenant.namespace,
        "tool": tool.name,
        "document": path[:DOCUMENT_ID_BYTES_MAX] if isinstance(path, str) else "",
        "outcome": outcome,
        "request": call.request_id,
    }
    try:
        _audit.info(orjson.dumps(line).decode())
    except TypeError:  # a path that is not valid text; the caller was told, the line goes without
        _audit.info(orjson.dumps({**line, "document": ""}).decode())

"""Push a folder: scan, plan, apply. This is the way in for other programs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from zibaldone.errors import InvalidArgument, NotFound, ZibaldoneError
from zibaldone.limits import PUSH_REQUEST_SECONDS_MAX, PUSH_TRIES, PUSH_WATCH_SECONDS
from zibaldone.push.apply import Apply
from zibaldone.push.backend import Backend
from zibaldone.push.memory import Memory
from zibaldone.push.note import Note, Source, read_note
from zibaldone.push.plan import Action, Plan, Step, files_to_read, make_plan
from zibaldone.push.remote import McpClient
from zibaldone.push.report import Report
from zibaldone.push.retry import Deadline, Retry
from zibaldone.push.scan import LeftOut, LocalFile, scan
from zibaldone.push.state import State
from zibaldone.push.targets import GraphitiTarget, Kind, Target, ZibaldoneTarget, kind_of_server

_GROUP = re.compile(r"[A-Za-z0-9_-]{1,200}")
_TARGET = "target"


@dataclass(frozen=True, slots=True)
class PushOptions:
    folder: Path
    url: str
    state_folder: Path
    """Where what was sent is remembered, in one file for each server, group and folder."""
    target: Literal["auto", "graphiti", "zibaldone"] = "auto"
    group: str = "main"
    name: str = ""
    """Of the folder, as part of what identifies its notes; by default the folder's own."""
    api_key: str = field(default="", repr=False)
    backend: Backend = "neo4j"
    resend_all: bool = False
    delete: bool = False
    needs_session: bool = False
    tries: int = PUSH_TRIES
    jitter: float = 0.0
    request_seconds_max: float = PUSH_REQUEST_SECONDS_MAX
    seconds_max: float | None = None
    """For the whole push."""

    @property
    def source(self) -> Source:
        return Source(self.group, self.name or self.folder.resolve().name)

    @property
    def state_file(self) -> Path:
        identity = "\n".join((self.url, self.group, self.name, str(self.folder.resolve())))
        return self.state_folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.db"

    def check(self) -> None:
        if not self.folder.is_dir():
            raise NotFound(f"{self.folder} is not a folder.")
        if not _GROUP.fullmatch(self.group):
            raise InvalidArgument(
                "A group has 1 to 200 letters, digits, dashes and underscores.", field="group"
            )
        if self.tries < 1:
            raise InvalidArgument("There must be at least one attempt.", field="retries")

    def retry(self) -> Retry:
        return Retry(
            tries=self.tries, jitter=self.jitter, deadline=Deadline.after(self.seconds_max)
        )


@dataclass(frozen=True, slots=True)
class Status:
    """How far a folder has been pushed, and whether its server is up."""

    plan: Plan
    sent: int
    waiting: int
    last_sent_us: int
    target: str
    server: str
    health: str
    """`ok`, or what is wrong."""
    is_up: bool


@asynccontextmanager
async def open_memory(options: PushOptions, retry: Retry | None = None) -> AsyncIterator[Memory]:
    """The memory tools of the server; no request is made before the first call."""
    async with McpClient(
        options.url,
        api_key=options.api_key,
        retry=retry or options.retry(),
        request_seconds_max=options.request_seconds_max,
        needs_session=options.needs_session,
    ) as client:
        yield Memory(client, options.backend)


async def push_folder(
    options: PushOptions,
    *,
    advance: Callable[[int], None] = lambda steps: None,
    start: Callable[[int], None] = lambda steps: None,
    retry: Retry | None = None,
) -> Report:
    """Bring the server up to the folder. `start` is told how many steps there are."""
    options.check()
    report = Report(target=options.target)
    with State(options.state_file) as state:
        if state.was_damaged:
            report.problems.append((str(state.file), "was damaged and begun anew"))
        async with open_memory(options, retry) as memory:
            plan = plan_push(options, state)
            _note_plan(report, plan)
            try:
                target = await _target(options, memory, state, plan)
                if target is None:
                    return report
                report.target = target.kind
                if _is_new_kind(target, state):
                    plan = plan_push(options, state)
                    _note_plan(report, plan)
                await _carry_out(options, plan, target, state, report, memory, start, advance)
            except ZibaldoneError as error:
                done = {path for action in Action for path in report.of(action)}
                report.stopped = error
                report.left = [step.path for step in plan.steps if step.path not in done]
            report.server = memory.client.server_name
    return report


def plan_push(options: PushOptions, state: State) -> Plan:
    """What a push would do now. Reads the files that may have changed."""
    files, left_out = scan(options.folder)
    saved, interrupted = state.notes(), state.sending()
    read: dict[str, str | LeftOut] = {}
    read_ns: dict[str, tuple[LocalFile, int]] = {}
    suspects = files_to_read(files, saved, resend_all=options.resend_all)
    for file in suspects:
        note = read_note(options.folder, file.path)
        if isinstance(note, Note):
            read[file.path] = note.digest
            read_ns[file.path] = (note.file, note.read_ns)
        else:
            read[file.path] = note
    plan = make_plan(
        files,
        left_out,
        read,
        saved,
        interrupted=interrupted,
        resend_all=options.resend_all,
        delete=options.delete,
    )
    if plan.touched:
        state.touch(dict(read_ns[file.path] for file in plan.touched))
    return plan


def dry_run(options: PushOptions) -> Report:
    """What a push would do, without a request."""
    options.check()
    report = Report(is_dry_run=True)
    with State(options.state_file) as state:
        plan = plan_push(options, state)
        _note_plan(report, plan)
        report.target = _known_kind(options, state) or options.target
        for step in plan.steps:
            report.of(step.action).append(step.path)
    return report


async def push_status(options: PushOptions) -> Status:
    """How far the folder has been pushed; asks the server whether it is up, and sends nothing."""
    options.check()
    with State(options.state_file) as state:
        plan = plan_push(options, state)
        saved = state.notes()
        server, health, is_up = "", "", False
        async with open_memory(options) as memory:
            try:
                health = await memory.status()
                is_up = True
            except ZibaldoneError as error:
                health = error.message
            server = memory.client.server_name
        return Status(
            plan=plan,
            sent=len(saved),
            waiting=sum(1 for note in saved.values() if not note.is_visible),
            last_sent_us=max((note.sent_at_us for note in saved.values()), default=0),
            target=_known_kind(options, state) or options.target,
            server=server,
            health=health,
            is_up=is_up,
        )


async def watch_folder(
    options: PushOptions,
    on_report: Callable[[Report], None],
    *,
    seconds: float = PUSH_WATCH_SECONDS,
) -> None:
    """Push again and again, until cancelled. A server that is away is tried less and less often."""
    wait_seconds = seconds
    while True:
        report = await push_folder(options)
        on_report(report)
        wait_seconds = min(2 * wait_seconds, 30 * seconds) if report.stopped else seconds
        await asyncio.sleep(wait_seconds)


def _known_kind(options: PushOptions, state: State) -> Kind | None:
    if options.target != "auto":
        return options.target
    saved = state.fact(_TARGET)
    return saved if saved in ("zibaldone", "graphiti") else None  # type: ignore[return-value]


async def _target(options: PushOptions, memory: Memory, state: State, plan: Plan) -> Target | None:
    """The server as what it is; None if there is nothing to do and nobody has to be asked."""
    kind = _known_kind(options, state)
    if kind is None:
        if not plan.steps:
            return None
        kind = kind_of_server((await memory.client.server()).name)
    if kind == "graphiti":
        return GraphitiTarget(memory, options.source, state)
    return ZibaldoneTarget(memory, options.source)


def _is_new_kind(target: Target, state: State) -> bool:
    """Whether the server is of another kind than that to which notes were sent before."""
    before = state.fact(_TARGET)
    if before == target.kind:
        return False
    if before:
        state.clear()
    state.set_fact(_TARGET, target.kind)
    return bool(before)


async def _carry_out(
    options: PushOptions,
    plan: Plan,
    target: Target,
    state: State,
    report: Report,
    memory: Memory,
    start: Callable[[int], None],
    advance: Callable[[int], None],
) -> None:
    lost = await target.prepare(has_steps=bool(plan.steps), check_all=options.resend_all)
    steps = list(plan.steps)
    planned = {step.path for step in steps}
    gone = {*plan.gone, *(one.path for one in plan.skipped)}
    again = [path for path in lost if path not in planned and path not in gone]
    steps = [*(Step(Action.UPDATE, path) for path in sorted(again)), *steps]
    report.unchanged -= len(again)
    start(len(steps))
    if steps:
        await Apply(options.folder, target, state, report, advance, memory.is_up).run(steps)
    if report.stopped is None:
        # Whatever is in a folder that cannot be read is still there.
        kept = [one.path for one in plan.skipped if not one.is_empty]
        is_whole = plan.has_notes and not any(path.endswith("/") for path in kept)
        may_delete = options.delete and is_whole
        report.waiting = list(await target.finish(delete=may_delete, kept=kept))


def _note_plan(report: Report, plan: Plan) -> None:
    report.unchanged = plan.unchanged
    report.skipped = [(one.path, one.reason) for one in plan.skipped]
    report.gone = list(plan.gone)

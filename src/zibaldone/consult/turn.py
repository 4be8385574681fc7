"""One turn of a session: lock, pack, budget, loop, record.

Each reply of the model is recorded before anything else happens, in one transaction with the files
that were sent and what it cost. So a turn that is repeated after a crash goes on behind the last
reply that was recorded: an answer is never asked for twice, and what was sent but not answered is
sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.access.share import SHARE
from zibaldone.access.turns import TaskTurns
from zibaldone.consult import state as states
from zibaldone.consult.answer import (
    ChatAnswer,
    Report,
    chat_answer,
    file_list,
    placed_lists,
    shown_path,
    without_paths,
)
from zibaldone.consult.budget import cost_of, require_budget, reserved, worst_case
from zibaldone.consult.functions import FileStore, Functions, Knowledge, definitions
from zibaldone.consult.loop import INTERRUPTED, Ended, converse
from zibaldone.consult.providers.port import Provider
from zibaldone.consult.state import Step, Stored
from zibaldone.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidArgument,
    SessionFull,
    ZibaldoneError,
)
from zibaldone.limits import (
    CONSULT_LEASE_SECONDS,
    CONSULT_PER_KEY,
    CONSULT_TURN_WAIT_SECONDS,
    Limits,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import (
    Message,
    ModelReply,
    ModelRequest,
    SessionKey,
    Spent,
    ToolCall,
    Usage,
)
from zibaldone.model.instant import now_us
from zibaldone.pack.build import Ask, Packed, build
from zibaldone.pack.counts import Counts
from zibaldone.pack.files import PackedFile
from zibaldone.pack.stable import SessionState, with_reply
from zibaldone.pack.tokens import token_counter
from zibaldone.store.port import Store, end_if_cancelled

T = TypeVar("T")

_SECOND_US = 1_000_000
_LOOK_SECONDS = 0.2
_PAST_TURNS_MAX = 32
"""Turns of a session whose answers can be given again to a job that is repeated."""


class SessionBusy(Exception):
    """Another turn of the session runs, or the key has enough turns running: later."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    turn_id: str
    """The id of the job: a repeated turn has the same."""
    key: SessionKey
    ask: Ask
    output_schema: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    may_read: bool = True
    """The caller may read documents: so may an assistant for them, if it is allowed to."""


async def _no_progress(message: str) -> None:
    del message


async def _no_text(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True)
class Watch:
    """Whoever waits for a turn."""

    on_progress: Callable[[str], Awaitable[None]] = _no_progress
    on_text: Callable[[str], Awaitable[None]] = _no_text
    check: Callable[[], None] = lambda: None
    """Raises to stop the turn."""


OpenProvider = Callable[[Assistant], Provider]
OpenStore = Callable[[Assistant, Sequence[PackedFile], str], AbstractAsyncContextManager[FileStore]]
"""The files that are not in the prompt, searchable until the end of the block."""
KnowledgeOf = Callable[[Tenant, str], Knowledge]
"""The search of the knowledge base for a caller: tenant, key id."""


@dataclass(slots=True)
class Consulting:
    """Everything that turns need; put together in `wiring`."""

    store: Store
    limits: Limits
    assistants: Mapping[str, Assistant]
    open_provider: OpenProvider
    open_files: OpenStore
    knowledge_of: KnowledgeOf
    packs: TaskTurns
    """Held while files are read and counted."""
    clock: Callable[[], int] = now_us
    counts: Counts = field(default_factory=Counts)
    """Tokens of files."""
    running: dict[str, int] = field(default_factory=dict)
    """Turns of this process, by key id."""

    async def take_turn(
        self, tenant: Tenant, request: TurnRequest, watch: Watch | None = None
    ) -> ChatAnswer:
        """The answer. SessionBusy: not now. A ZibaldoneError says what went wrong."""
        assistant = self.assistants.get(request.key.assistant)
        if assistant is None:
            raise InvalidArgument(
                f"There is no assistant {request.key.assistant!r} in the settings any more.",
                field="assistant",
            )
        owner = request.key.owner
        if self.running.get(owner, 0) >= CONSULT_PER_KEY:
            raise SessionBusy
        self.running[owner] = self.running.get(owner, 0) + 1
        shared = SHARE.set(owner)
        try:
            turn = _Turn(self, tenant, assistant, request, watch or Watch())
            return await turn.run()
        finally:
            SHARE.reset(shared)
            self.running[owner] -= 1
            if not self.running[owner]:
                del self.running[owner]


class _Turn:
    def __init__(
        self,
        consulting: Consulting,
        tenant: Tenant,
        assistant: Assistant,
        request: TurnRequest,
        watch: Watch,
    ) -> None:
        self._all = consulting
        self._tenant = tenant
        self._assistant = assistant
        self._request = request
        self._key = request.key
        self._watch = watch
        self._holder = f"{request.turn_id}:{secrets.token_hex(4)}"
        self._recorded = SessionState()
        """As it is in the store."""
        self._state = SessionState()
        """With what is to be sent next."""
        self._turn: dict[str, Any] = {}
        self._overhead_tokens = 0
        """System and functions."""
        self._packed: Packed | None = None
        self._provider: Provider | None = None
        self._text_chars = 0

    async def run(self) -> ChatAnswer:
        try:
            async with asyncio.timeout(self._assistant.seconds_max), self._lease():
                return await self._run()
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self._assistant.name} took longer than {self._assistant.seconds_max} s for this "
                "turn (seconds_max of the assistant). What it answered before is kept."
            ) from None

    async def _run(self) -> ChatAnswer:
        stored = await self._read()
        past = await asyncio.to_thread(self._past_answer, stored)
        if past is not None:
            return past
        await self._watch.on_progress("reading files")
        is_repeated = stored.turn.get("id") == self._request.turn_id
        self._recorded = stored.state
        packed = await self._pack(stored.state if is_repeated else self._closed(stored))
        self._packed = packed
        self._begin(stored, packed, is_repeated=is_repeated)
        self._require_window()
        await self._require_budget()  # before files are indexed for nothing
        files = (*packed.overflow, *packed.attachments)
        async with contextlib.AsyncExitStack() as open_parts:
            index: FileStore | None = None
            if files:
                await self._watch.on_progress(f"indexing {len(files)} files")
                index = await open_parts.enter_async_context(
                    self._all.open_files(self._assistant, files, self._key.owner)
                )
            self._provider = self._all.open_provider(self._assistant)
            open_parts.push_async_callback(self._provider.close)
            knowledge = None
            if self._assistant.knowledge and self._request.may_read:
                knowledge = self._all.knowledge_of(self._tenant, self._key.owner)
            calls = _last_calls(stored.state) if is_repeated else ()
            ended = await converse(
                self, Functions(index, knowledge), open_calls=calls, on_call=self._on_call
            )
        return await self._end(ended)

    # ---- before ----

    async def _read(self) -> Stored:
        return await self._all.store.read(
            self._tenant, lambda reader: states.read(reader, self._key, self._assistant)
        )

    def _past_answer(self, stored: Stored) -> ChatAnswer | None:
        """The answer that this turn was given already, before its process died."""
        if stored.session is None:
            return None
        turns = [stored.turn, *stored.turn.get("past", [])]
        for turn in turns:
            if turn.get("id") != self._request.turn_id:
                continue
            if turn.get("is_final"):
                said = [message for message in stored.state.messages if not message.is_base]
                text = said[turn["index"]].text
                schema = self._request.output_schema
                return chat_answer(stored.session, dict(turn), text, schema)
            if turn is not stored.turn:
                raise Conflict(
                    "The turn was interrupted, and another turn of the session went on meanwhile. "
                    "Ask again.",
                    session_id=self._key.session_id,
                )
        return None

    def _closed(self, stored: Stored) -> SessionState:
        """The conversation; where the last turn died between its calls, their results say so."""
        results = [
            Message("tool", INTERRUPTED, tool_call_id=call_id) for call_id in stored.open_calls
        ]
        return with_reply(stored.state, results, self._assistant) if results else stored.state

    async def _pack(self, state: SessionState) -> Packed:
        stop = threading.Event()

        def check() -> None:
            if stop.is_set():
                raise _StoppedError
            self._watch.check()

        def pack() -> tuple[Packed, int]:
            packed = build(
                self._assistant,
                state,
                self._request.ask,
                counts=self._all.counts,
                check=check,
            )
            written = orjson.dumps([tool.parameters for tool in definitions(self._assistant)])
            words = " ".join(tool.description for tool in definitions(self._assistant))
            tokens = token_counter(self._assistant).count(written.decode() + words)
            return packed, tokens

        async with self._all.packs:
            packing = asyncio.ensure_future(asyncio.to_thread(pack))
            try:
                packed, tools_tokens = await asyncio.shield(packing)
            finally:
                stop.set()
                await asyncio.gather(packing, return_exceptions=True)  # then the place is free
        self._overhead_tokens = packed.tokens.total - packed.state.tokens + tools_tokens
        return packed

    def _begin(self, stored: Stored, packed: Packed, *, is_repeated: bool) -> None:
        if is_repeated:
            self._state = stored.state
            self._turn = dict(stored.turn)
            return
        self._state = packed.state
        session = stored.session
        self._turn = {
            "id": self._request.turn_id,
            "number": 1 if session is None else session.turns + 1,
            "is_final": False,
            "report": self._report(packed),
            "usage": [0, 0, 0, 0],
            "cost": 0.0,
            "calls": 0,
            "model": "",
            "stop": "",
            "past": [],
        }
        if session is not None:
            past = [stored.turn, *stored.turn.get("past", [])]
            self._turn["past"] = [_slim(turn) for turn in past if turn][:_PAST_TURNS_MAX]

    def _report(self, packed: Packed) -> Report:
        lists, left_out = placed_lists(packed.placed)
        notes = [f"{shown_path(path)}: {reason}" for path, reason in packed.problems[:20]]
        return {
            "sent": lists["inline"],
            "unchanged": lists["unchanged"],
            "store": lists["store"],
            "attachments": lists["attachment"],
            "left_out": left_out,
            "deleted": file_list(packed.deleted),
            "rewritten": packed.rewrite_reason if packed.is_rewritten else "",
            "saved": max(packed.tokens.full_resend - packed.tokens.sent_new, 0),
            "redacted": packed.redacted,
            "notes": notes,
        }

    def _require_window(self) -> None:
        tokens = self._overhead_tokens + self._state.tokens
        assistant = self._assistant
        if tokens + assistant.output_tokens <= assistant.context_tokens:
            return
        room = f"{assistant.context_tokens} tokens, {assistant.output_tokens} of them for answers"
        if not self._recorded.messages:
            raise SessionFull(
                f"What is to be sent has {tokens} tokens; the context window of {assistant.name} "
                f"has {room}. Send less, or set inline_tokens of the assistant.",
                tokens=tokens,
                context_tokens=assistant.context_tokens,
            )
        raise self._full(f"{tokens} tokens for a context window of {room}")

    def _full(self, what: str) -> SessionFull:
        proposed = next_session_id(self._key.session_id)
        return SessionFull(
            f"The session {self._key.session_id!r} is full: {what}. Go on in a new session, for "
            f"instance session_id={proposed!r}; files are sent again there.",
            session_id=self._key.session_id,
            proposed_session_id=proposed,
        )

    async def _require_budget(self) -> None:
        limits = self._all.limits
        if limits.consult_tokens_per_day is None and limits.consult_cost_per_day is None:
            return
        day = states.day_of(self._all.clock())
        spent: Spent = await self._all.store.read(
            self._tenant, lambda reader: reader.sessions.spent(self._key.owner, day)
        )
        require_budget(spent, self._worst_case, limits)

    @property
    def _worst_case(self) -> Spent:
        return worst_case(self._overhead_tokens + self._state.tokens, self._assistant)

    def _reserved(self) -> AbstractAsyncContextManager[None]:
        day = states.day_of(self._all.clock())
        owner, limits = self._key.owner, self._all.limits
        return reserved(self._all.store, self._tenant, owner, day, self._worst_case, limits)

    # ---- the loop ----

    async def send(self, results: tuple[Message, ...]) -> ModelReply:
        """As `loop.Conversation`: send, and record the reply."""
        end_if_cancelled()  # a deadline that came while something was written is not lost
        if results:
            self._state = await asyncio.to_thread(with_reply, self._state, results, self._assistant)
            self._require_window()
        async with self._reserved():
            await self._watch.on_progress(f"asking {self._assistant.model}")
            reply = await self._stoppable(self._ask())
            after = await asyncio.to_thread(
                with_reply, self._state, (reply.message,), self._assistant
            )
            await self._record(reply, after)
        return reply

    async def _ask(self) -> ModelReply:
        if self._provider is None or self._packed is None:
            raise RuntimeError("the turn has not begun")
        messages = self._state.messages
        breakpoints = [at for at in self._packed.breakpoints if at < len(messages)]
        request = ModelRequest(
            system=self._packed.system,
            tools=definitions(self._assistant),
            messages=messages,
            breakpoints=tuple(sorted({*breakpoints[:2], len(messages) - 1})),
            cache_key=self._packed.cache_key,
            output_schema=self._request.output_schema,
            reasoning_effort=self._request.reasoning_effort,
            output_tokens=self._assistant.output_tokens,
        )
        try:
            return await self._provider.send(request, on_text=self._on_text)
        except SessionFull as error:
            raise self._full(error.message.rstrip(".")) from error

    async def _stoppable(self, work: Awaitable[T]) -> T:
        """Await it, and look meanwhile whether the turn is to stop."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=_LOOK_SECONDS)
                self._watch.check()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _on_text(self, text: str) -> None:
        self._text_chars += len(text)
        await self._watch.on_text(text)
        await self._watch.on_progress(f"answering: {self._text_chars} characters")

    async def _on_call(self, call: ToolCall) -> None:
        self._watch.check()
        await self._watch.on_progress(f"{call.name[:64]} for {self._assistant.name}")

    async def _record(self, reply: ModelReply, after: SessionState) -> None:
        cost = cost_of(reply.usage, self._assistant)
        used = Usage(*self._turn["usage"]) + reply.usage
        said = sum(not message.is_base for message in after.messages)
        is_first = not self._turn["model"]
        turn = {
            **self._turn,
            "is_final": not reply.message.tool_calls,
            "index": said - 1,
            "usage": [
                used.input_tokens,
                used.cached_tokens,
                used.cache_write_tokens,
                used.output_tokens,
            ],
            "cost": self._turn["cost"] + cost,
            "model": reply.model or self._assistant.model,
            "stop": reply.stop,
            "calls": self._turn["calls"] + len(reply.message.tool_calls),
        }
        saved = self._turn["report"]["saved"] if is_first else 0
        step = Step(after, turn, reply.usage, cost, saved, is_first=is_first)
        before, at_us = self._recorded, self._all.clock()
        await self._all.store.write(
            self._tenant,
            lambda writer: states.record(
                writer, self._key, self._holder, self._assistant, before, step, at_us
            ),
        )
        self._recorded = self._state = after
        self._turn = turn

    async def _end(self, ended: Ended) -> ChatAnswer:
        stored = await self._read()
        if stored.session is None:
            raise Conflict("The session was reset while it was answering.")
        turn = dict(self._turn)
        if ended.is_cut_short:
            turn["stop"] = "steps"
        text, schema = ended.reply.message.text, self._request.output_schema
        return await asyncio.to_thread(chat_answer, stored.session, turn, text, schema)

    # ---- one turn at a time ----

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[None]:
        give_up_s = time.monotonic() + CONSULT_TURN_WAIT_SECONDS
        while not await self._take():
            self._watch.check()
            if time.monotonic() > give_up_s:
                raise SessionBusy
            await asyncio.sleep(_LOOK_SECONDS)
        renewing = asyncio.create_task(self._renew(), name="consult lease")
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            with contextlib.suppress(ZibaldoneError):
                await self._all.store.write(
                    self._tenant, lambda writer: writer.sessions.release(self._key, self._holder)
                )

    async def _take(self) -> bool:
        at_us = self._all.clock()
        until_us = at_us + int(CONSULT_LEASE_SECONDS * _SECOND_US)
        return await self._all.store.write(
            self._tenant,
            lambda writer: writer.sessions.lease(
                self._key, self._holder, now_us=at_us, until_us=until_us
            ),
        )

    async def _renew(self) -> None:
        """A lease that was lost is noticed when the next reply is recorded."""
        while True:
            await asyncio.sleep(CONSULT_LEASE_SECONDS / 4)
            with contextlib.suppress(ZibaldoneError):
                if not await self._all.store.write(
                    self._tenant, lambda writer: writer.sessions.holds(self._key, self._holder)
                ):
                    return
                await self._take()


class _StoppedError(Exception):
    """Nobody waits for the packed files any more."""


def next_session_id(session_id: str) -> str:
    """What to call the session that goes on where this one ends."""
    head, mark, number = session_id.rpartition("-v")
    if mark and head and number.isdecimal() and len(number) < 6:
        return f"{head}-v{int(number) + 1}"
    return f"{session_id}-v2"


def _last_calls(state: SessionState) -> tuple[ToolCall, ...]:
    return state.messages[-1].tool_calls if state.messages else ()


def _slim(turn: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in turn.items() if name != "past"}
    if "report" in kept:
        kept["report"] = without_paths(cast("Report", kept["report"]))
    return kept

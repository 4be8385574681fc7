"""count_tokens, and preview_pack for the operator: what files would take, and where they would go.

Nothing is sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.consult import state
from zibaldone.limits import (
    PACK_FILES_MAX,
    PACK_INSTRUCTIONS_CHARS_MAX,
    PACK_REPORT_FILES_MAX,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Place, SessionKey
from zibaldone.pack.build import Ask, Packed, build
from zibaldone.pack.stable import SessionState, inline_room
from zibaldone.pack.tokens import encoding_of
from zibaldone.tools.consult.fields import AssistantName, Paths, SessionId, assistant_named
from zibaldone.tools.spec import Arguments, Call, ToolSpec

T = TypeVar("T")


class CountTokens(Arguments):
    paths: Paths = Field(min_length=1, description="Files and folders, below the assistant's roots")
    assistant: AssistantName | None = Field(None, description="Needed if there are several")


class PreviewPack(Arguments):
    context: Paths = []
    attachments: Paths = []
    priority_context: Paths = []
    assistant: AssistantName | None = None
    session_id: SessionId | None = None
    instructions: str = Field("", max_length=PACK_INSTRUCTIONS_CHARS_MAX)
    with_messages: bool = False


class FileTokens(TypedDict):
    path: str
    tokens: int


class LeftOutFile(TypedDict):
    path: str
    why: str


class TokenCount(TypedDict):
    assistant: str
    encoding: str
    """o200k or cl100k: exact; estimate: an upper guess."""
    files: int
    tokens: int
    room: int
    """Tokens that files may take in the prompt."""
    in_prompt: int
    """Files that a new session would send."""
    in_store: int
    largest: list[FileTokens]
    left_out: list[LeftOutFile]
    left_out_count: int


class PreviewedFile(TypedDict):
    path: str
    place: Place
    tokens: int
    why: str
    redacted: int


class PreviewTokens(TypedDict):
    total: int
    sent_new: int
    full_resend: int
    room: int
    window: int


class PackPreview(TypedDict):
    assistant: str
    session_id: str | None
    encoding: str
    rewritten: bool
    rewrite_reason: str
    has_list: bool
    tokens: PreviewTokens
    redacted: int
    deleted: list[str]
    files: list[PreviewedFile]
    system: str | None
    messages: list[str] | None


async def handle_count(call: Call, given: CountTokens) -> TokenCount:
    assistant = assistant_named(call, given.assistant)
    packed = await _build(call, assistant, None, Ask(context=(*given.paths,)))
    files = [file for file in packed.placed if file.place != "left_out"]
    left_out = [file for file in packed.placed if file.place == "left_out"]
    largest = sorted(files, key=lambda file: (-file.tokens, file.path))[:PACK_REPORT_FILES_MAX]
    return {
        "assistant": assistant.name,
        "encoding": encoding_of(assistant),
        "files": len(files),
        "tokens": sum(file.tokens for file in files),
        "room": inline_room(assistant),
        "in_prompt": sum(file.place == "inline" for file in files),
        "in_store": sum(file.place == "store" for file in files),
        "largest": [{"path": file.path, "tokens": file.tokens} for file in largest],
        "left_out": [
            {"path": file.path, "why": file.why} for file in left_out[:PACK_REPORT_FILES_MAX]
        ],
        "left_out_count": len(left_out),
    }


async def handle_preview(call: Call, given: PreviewPack) -> PackPreview:
    assistant = assistant_named(call, given.assistant)
    ask = Ask(
        instructions=given.instructions,
        context=(*given.context,),
        attachments=(*given.attachments,),
        priority_context=(*given.priority_context,),
    )
    known = None if given.session_id is None else await _state(call, assistant, given.session_id)
    packed = await _build(call, assistant, known, ask)
    return {
        "assistant": assistant.name,
        "session_id": given.session_id,
        "encoding": encoding_of(assistant),
        "rewritten": packed.is_rewritten,
        "rewrite_reason": packed.rewrite_reason,
        "has_list": packed.state.stable is not None,
        "tokens": {
            "total": packed.tokens.total,
            "sent_new": packed.tokens.sent_new,
            "full_resend": packed.tokens.full_resend,
            "room": inline_room(assistant),
            "window": assistant.context_tokens - assistant.output_tokens,
        },
        "redacted": packed.redacted,
        "deleted": [*packed.deleted],
        "files": [
            {
                "path": file.path,
                "place": file.place,
                "tokens": file.tokens,
                "why": file.why,
                "redacted": file.redacted,
            }
            for file in packed.placed
        ],
        "system": packed.system if given.with_messages else None,
        "messages": (
            [message.text for message in packed.messages] if given.with_messages else None
        ),
    }


async def _state(call: Call, assistant: Assistant, session_id: str) -> SessionState:
    """What a session of the caller remembers; a new one, nothing."""
    key = SessionKey(call.principal.key_id, assistant.name, session_id)
    stored = await call.runtime.store.read(
        call.principal.tenant, lambda reader: state.read(reader, key, assistant)
    )
    return stored.state


async def _build(call: Call, assistant: Assistant, known: SessionState | None, ask: Ask) -> Packed:
    """Build in a thread, one for each caller; it stops when the call does."""
    counts = call.runtime.counts

    def work(check: Callable[[], None]) -> Packed:
        packed = build(assistant, known, ask, counts=counts, check=check)
        if call.is_operator:
            counts.save()
        return packed

    async with call.runtime.packs:
        return await _in_thread(work)


async def _in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise asyncio.CancelledError

    running = asyncio.ensure_future(asyncio.to_thread(work, check))
    try:
        return await asyncio.shield(running)
    finally:
        stopped.set()
        await asyncio.gather(running, return_exceptions=True)  # then the place is free


COUNT = ToolSpec(
    name="count_tokens",
    title="Count tokens of files",
    description=(
        "Count the tokens of files and folders as an assistant would get them, before you send "
        f"them: up to {PACK_FILES_MAX} files. Tells how many fit into the prompt, which are "
        "largest, and what is left out."
    ),
    arguments=CountTokens,
    result=TokenCount,
    effect="read",
    handler=handle_count,
)
PREVIEW = ToolSpec(
    name="preview_pack",
    title="Preview a turn",
    description="What a turn with an assistant would send, search and leave out. Sends nothing.",
    arguments=PreviewPack,
    result=PackPreview,
    effect="read",
    handler=handle_preview,
    is_local=True,
)

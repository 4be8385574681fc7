"""list_sessions, describe_session, reset_session: conversations of the caller with assistants."""

from __future__ import annotations

import secrets
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.consult.answer import FileList, file_list
from zibaldone.errors import Conflict, InvalidArgument, NotFound
from zibaldone.limits import (
    CONSULT_LEASE_SECONDS,
    CONSULT_SESSIONS_LIMIT_DEFAULT,
    CONSULT_SESSIONS_LIMIT_MAX,
)
from zibaldone.model.consult import Session, SessionKey
from zibaldone.model.instant import now_us, to_iso
from zibaldone.store.port import Reader, Writer
from zibaldone.tools.consult.fields import AssistantName, SessionId, assistant_named
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_SECOND_US = 1_000_000


class ListSessions(Arguments):
    assistant: AssistantName | None = Field(None, description="Only with this one")
    limit: int = Field(CONSULT_SESSIONS_LIMIT_DEFAULT, ge=1, le=CONSULT_SESSIONS_LIMIT_MAX)
    after: str | None = Field(
        None, pattern=r"^[0-9]{1,19}\.[0-9]{1,19}$", description="next_after of the page before"
    )


class OneSession(Arguments):
    assistant: AssistantName
    session_id: SessionId


class SessionInfo(TypedDict):
    assistant: str
    session_id: str
    turns: int
    tokens: int
    """Of the conversation as it is now."""
    saved_tokens: int
    cost: float
    created_at: str
    updated_at: str


class SessionList(TypedDict):
    sessions: list[SessionInfo]
    next_after: str | None


class SessionDetails(SessionInfo):
    context_tokens: int
    """What the window of the assistant holds."""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    messages: int
    has_list: bool
    """Not all files fitted: which are in the prompt is fixed until the session is reset."""
    inline: FileList
    """Files that are in the prompt."""


class ResetOutcome(TypedDict):
    status: Literal["reset", "absent"]
    assistant: str
    session_id: str


def _key(call: Call, given: OneSession) -> SessionKey:
    return SessionKey(call.principal.key_id, given.assistant, given.session_id)


def _session_info(session: Session) -> SessionInfo:
    return {
        "assistant": session.key.assistant,
        "session_id": session.key.session_id,
        "turns": session.turns,
        "tokens": session.tokens,
        "saved_tokens": session.saved_tokens,
        "cost": session.cost,
        "created_at": to_iso(session.created_at_us),
        "updated_at": to_iso(session.updated_at_us),
    }


async def handle_list(call: Call, given: ListSessions) -> SessionList:
    before = None
    if given.after is not None:
        at_us, _, storage_key = given.after.partition(".")
        before = (int(at_us), int(storage_key))
        if max(before) >= 2**63:
            raise InvalidArgument("after is not the next_after of a page.", field="after")
    owner = call.principal.key_id
    sessions = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: reader.sessions.page(
            owner, assistant=given.assistant, limit=given.limit + 1, before=before
        ),
    )
    page = sessions[: given.limit]
    last = page[-1] if len(sessions) > given.limit else None
    return {
        "sessions": [_session_info(session) for session in page],
        "next_after": None if last is None else f"{last.updated_at_us}.{last.storage_key}",
    }


async def handle_describe(call: Call, given: OneSession) -> SessionDetails:
    assistant = assistant_named(call, given.assistant)
    key = _key(call, given)

    def describe(reader: Reader) -> SessionDetails:
        session = reader.sessions.get(key)
        if session is None or session.turns == 0:
            raise NotFound(
                f"There is no session {given.session_id!r} with {given.assistant}.",
                session_id=given.session_id,
            )
        stable = reader.sessions.stable(key)
        inline = sorted(reader.sessions.sent(key)) if stable is None else list(stable)
        return {
            **_session_info(session),
            "context_tokens": assistant.context_tokens,
            "input_tokens": session.usage.input_tokens,
            "cached_tokens": session.usage.cached_tokens,
            "output_tokens": session.usage.output_tokens,
            "messages": reader.sessions.message_count(key),
            "has_list": stable is not None,
            "inline": file_list(inline),
        }

    return await call.runtime.store.read(call.principal.tenant, describe)


async def handle_reset(call: Call, given: OneSession) -> ResetOutcome:
    key, at_us = _key(call, given), now_us()
    holder = f"reset-{secrets.token_hex(8)}:0"

    def reset(writer: Writer) -> Literal["reset", "absent"]:
        session = writer.sessions.get(key)
        until_us = at_us + int(CONSULT_LEASE_SECONDS * _SECOND_US)
        if not writer.sessions.lease(key, holder, now_us=at_us, until_us=until_us):
            raise Conflict(
                f"A turn of the session {given.session_id!r} is running; wait for it, or cancel "
                "its job.",
                session_id=given.session_id,
            )
        writer.sessions.remove(key)
        return "absent" if session is None or session.turns == 0 else "reset"

    status = await call.runtime.store.write(call.principal.tenant, reset)
    return {"status": status, "assistant": given.assistant, "session_id": given.session_id}


LIST = ToolSpec(
    name="list_sessions",
    title="List sessions",
    description="Your conversations with assistants, the one used last first.",
    arguments=ListSessions,
    result=SessionList,
    effect="read",
    handler=handle_list,
)
DESCRIBE = ToolSpec(
    name="describe_session",
    title="One session",
    description="How full a conversation is, what it cost, and which files are in its prompt.",
    arguments=OneSession,
    result=SessionDetails,
    effect="read",
    handler=handle_describe,
)
RESET = ToolSpec(
    name="reset_session",
    title="Reset a session",
    description=(
        "Forget a conversation: its history, which files were sent and which are in the prompt. "
        "The next turn begins anew."
    ),
    arguments=OneSession,
    result=ResetOutcome,
    effect="write",
    handler=handle_reset,
    idempotent=True,
)

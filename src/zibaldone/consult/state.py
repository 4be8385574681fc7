"""What is stored of a session: read before a turn, and recorded after each reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zibaldone.errors import Conflict
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, Session, SessionKey, Spent, Usage
from zibaldone.pack.stable import SessionState
from zibaldone.store.port import Reader, Writer

_DAY_US = 86_400_000_000

_KEPT = ("base_tokens", "superseded_tokens", "last_sent_at_us", "tree", "tree_tokens")
"""Of a SessionState, what has no table of its own."""


@dataclass(frozen=True, slots=True)
class Stored:
    session: Session | None
    """None: the session has no turn yet."""
    state: SessionState

    @property
    def turn(self) -> Mapping[str, Any]:
        """What is recorded of the last turn."""
        turn = {} if self.session is None else self.session.state.get("turn", {})
        return turn if isinstance(turn, dict) else {}

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Tool calls that were never answered: the turn died while it worked on them."""
        messages = self.state.messages
        last = messages[-1] if messages else None
        if last is None or last.role != "assistant":
            return ()
        return tuple(call.call_id for call in last.tool_calls)


@dataclass(frozen=True, slots=True)
class Step:
    """One reply, and what it changes."""

    state: SessionState
    """With the reply."""
    turn: Mapping[str, Any]
    usage: Usage
    cost: float
    saved_tokens: int = 0
    is_first: bool = False
    """The first reply of its turn."""


def read(reader: Reader, key: SessionKey, assistant: Assistant) -> Stored:
    """The session as it was recorded last."""
    session = reader.sessions.get(key)
    if session is None or session.turns == 0:
        return Stored(None, SessionState())
    kept = session.state.get("pack", {})
    is_stable = assistant.stable_inline
    return Stored(
        session,
        SessionState(
            stable=reader.sessions.stable(key) if is_stable else None,
            sent=reader.sessions.sent(key) if is_stable else {},
            messages=tuple(reader.sessions.messages(key)),
            tokens=session.tokens,
            **{name: kept[name] for name in _KEPT if name in kept},
        ),
    )


def record(
    writer: Writer,
    key: SessionKey,
    holder: str,
    assistant: Assistant,
    before: SessionState,
    step: Step,
    at_us: int,
) -> None:
    """Store everything that a reply changes. Conflict: the session was taken over or reset.

    `before` is what was recorded last: only what differs is written.
    """
    if not writer.sessions.holds(key, holder):
        raise Conflict(
            "The session was reset, or another process went on with this turn; this one stops.",
            session_id=key.session_id,
        )
    state = step.state
    session = writer.sessions.get(key) or Session(key, created_at_us=at_us)
    writer.sessions.put(
        replace(
            session,
            turns=session.turns + step.is_first,
            tokens=state.tokens,
            usage=session.usage + step.usage,
            saved_tokens=session.saved_tokens + step.saved_tokens,
            cost=session.cost + step.cost,
            state={
                "pack": {name: getattr(state, name) for name in _KEPT},
                "turn": dict(step.turn),
            },
            updated_at_us=max(at_us, session.updated_at_us),
        )
    )
    same = _same_length(before.messages, state.messages)
    writer.sessions.put_messages(key, state.messages[same:], same)
    if assistant.stable_inline:
        if state.stable is not None:
            writer.sessions.put_stable(key, state.stable, at_us)
        changed = {path: file for path, file in state.sent.items() if before.sent.get(path) != file}
        writer.sessions.put_sent(key, changed)
        writer.sessions.remove_sent(key, before.sent.keys() - state.sent.keys())
    tokens = step.usage.input_tokens + step.usage.output_tokens
    writer.sessions.spend(key.owner, day_of(at_us), Spent(tokens, step.cost))


def day_of(at_us: int) -> int:
    """A day of UTC, counted from 1970."""
    return at_us // _DAY_US


def _same_length(before: tuple[Message, ...], after: tuple[Message, ...]) -> int:
    """How many messages at the beginning are the same."""
    for position, (one, other) in enumerate(zip(before, after, strict=False)):
        if one is not other and one != other:
            return position
    return min(len(before), len(after))

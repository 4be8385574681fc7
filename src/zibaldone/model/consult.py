"""Values of a consultation: what is said to an assistant, what it answers, and what was sent.

Messages are stored and sent again word for word: `to_json` of the same message is always the same
value, with the same keys in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]
Stop = Literal["end", "tools", "length", "refused"]

Place = Literal["inline", "unchanged", "store", "attachment", "left_out"]
"""Where a file is in a turn. inline: sent with it; unchanged: the assistant has it already; store
and attachment: it can be searched; left_out: the assistant cannot see it."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session. The namespace is the tenant's, so equal ids of two callers are two sessions."""

    owner: str
    """Key id of the caller."""
    assistant: str
    session_id: str


@dataclass(frozen=True, slots=True)
class SentFile:
    """What is remembered of a file that the assistant has, to see whether it changed."""

    size: int
    mtime_ns: int
    digest: str | None = None
    """Hash of its content, if the file was so young that an edit might have left mtime as it is."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str
    """JSON as the model wrote it; it may be malformed."""

    def to_json(self) -> dict[str, Any]:
        return {"call_id": self.call_id, "name": self.name, "arguments": self.arguments}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ToolCall:
        return cls(value["call_id"], value["name"], value["arguments"])


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    """Of the call that a message of the role `tool` answers."""
    opaque: Any = None
    """What the same provider wants back (reasoning, thinking), as JSON; others ignore it."""
    is_base: bool = False
    """Part of the base: the files that a session begins with."""

    def to_json(self) -> dict[str, Any]:
        """Only what differs from the default, in a fixed order."""
        value: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.tool_calls:
            value["tool_calls"] = [call.to_json() for call in self.tool_calls]
        if self.tool_call_id:
            value["tool_call_id"] = self.tool_call_id
        if self.opaque is not None:
            value["opaque"] = self.opaque
        if self.is_base:
            value["is_base"] = True
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Message:
        return cls(
            role=value["role"],
            text=value["text"],
            tool_calls=tuple(map(ToolCall.from_json, value.get("tool_calls", ()))),
            tool_call_id=value.get("tool_call_id", ""),
            opaque=value.get("opaque"),
            is_base=value.get("is_base", False),
        )


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A function that the assistant may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    system: str
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    breakpoints: tuple[int, ...] = ()
    """Indices of messages after which the prompt cache may be cut, at most 3. The provider adds one
    after system and tools."""
    cache_key: str = ""
    output_schema: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    output_tokens: int = 8_000


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    """Cached ones included."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelReply:
    message: Message
    usage: Usage
    stop: Stop
    model: str


@dataclass(frozen=True, slots=True)
class Session:
    """What is remembered of a session; its messages, its list and its files apart."""

    key: SessionKey
    turns: int = 0
    """Turns that were begun: their first reply is stored."""
    tokens: int = 0
    """Of the conversation, as the assistant has it."""
    usage: Usage = Usage()
    """Of all turns, as the provider counted."""
    saved_tokens: int = 0
    """What all turns would have sent more without the list."""
    cost: float = 0.0
    state: Mapping[str, Any] = field(default_factory=dict)
    """What else the next turn needs, as JSON."""
    created_at_us: int = 0
    updated_at_us: int = 0
    storage_key: int = 0
    """Set by the store."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a key spent on a day."""

    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacedFile:
    path: str
    place: Place
    tokens: int
    why: str = ""
    """Why it is left out, or why it is not where one would expect it."""
    redacted: int = 0
    """Secrets that were taken out of it."""

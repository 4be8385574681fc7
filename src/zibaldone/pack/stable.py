"""What a session remembers, and the stable-inline list: which files travel in the prompt.

As long as everything fits, every file does. When something does not for the first time, the split
is made once and kept: files that were sent already stay, then the smallest are taken first.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from zibaldone.limits import PACK_INLINE_SHARE
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, SentFile
from zibaldone.pack.prompt import Mark
from zibaldone.pack.tokens import MESSAGE_TOKENS, TokenCounter, token_counter


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is stored of a session between two turns. A new one begins without any."""

    stable: tuple[str, ...] | None = None
    """The list; None until something does not fit. An empty list is a list."""
    sent: Mapping[str, SentFile] = field(default_factory=dict)
    """What the assistant has, by the name that is shown."""
    messages: tuple[Message, ...] = ()
    tokens: int = 0
    """Of all messages."""
    base_tokens: int = 0
    """Of those with files (`is_base`)."""
    superseded_tokens: int = 0
    """Of these, what is out of date."""
    last_sent_at_us: int | None = None
    tree: str = ""
    """The files that the assistant was told of, and how each was marked; see `pack_marks`."""
    tree_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    inline: frozenset[str]
    store: tuple[str, ...]
    stable: tuple[str, ...] | None


def inline_room(assistant: Assistant) -> int:
    """Tokens that files may take in the prompt."""
    window = assistant.context_tokens - assistant.output_tokens
    return min(assistant.inline_tokens or int(window * PACK_INLINE_SHARE), max(window, 0))


def split(
    tokens: Mapping[str, int],
    *,
    stable: tuple[str, ...] | None,
    kept: Mapping[str, int],
    room: int,
    priority: frozenset[str] = frozenset(),
) -> Split:
    """Which files are inline and which in the store.

    `tokens` are the files of this call, `kept` those that were sent before, each at its present
    size. With a list, the list decides alone.
    """
    if stable is not None:
        listed = frozenset(stable)
        inline = listed.intersection(tokens)
        return Split(inline, (*sorted(tokens.keys() - listed),), stable)
    used = sum(kept.values())
    added = [name for name in tokens if name not in kept]
    if used + sum(tokens[name] for name in added) <= room:
        return Split(frozenset(tokens), (), None)
    taken = set(kept)
    store: list[str] = []
    for name in sorted(added, key=lambda name: (name not in priority, tokens[name], name)):
        if used + tokens[name] <= room:
            used += tokens[name]
            taken.add(name)
        else:
            store.append(name)
    return Split(frozenset(taken).intersection(tokens), (*sorted(store),), (*sorted(taken),))


def with_reply(
    state: SessionState, messages: Iterable[Message], assistant: Assistant
) -> SessionState:
    """The state with messages that came after the packed ones, in order."""
    added = (*messages,)
    counter = token_counter(assistant)
    return replace(
        state,
        messages=(*state.messages, *added),
        tokens=state.tokens + sum(message_tokens(message, counter) for message in added),
    )


def message_tokens(message: Message, counter: TokenCounter) -> int:
    calls = "".join(call.name + call.arguments for call in message.tool_calls)
    return counter.count(message.text) + (counter.count(calls) if calls else 0) + MESSAGE_TOKENS


def pack_marks(marks: Mapping[str, Mark]) -> str:
    """Names and marks as text that is short to store: paths repeat one another."""
    lines = "\n".join([mark + name for name, mark in sorted(marks.items())])
    return base64.b64encode(zlib.compress(lines.encode())).decode()


def unpack_marks(packed: str) -> dict[str, Mark]:
    if not packed:
        return {}
    lines = zlib.decompress(base64.b64decode(packed)).decode().split("\n")
    return cast("dict[str, Mark]", {line[1:]: line[0] for line in lines if line})

"""The loop of one turn: ask the model, carry out what it calls, until it answers. Bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from zibaldone.consult.functions import Functions
from zibaldone.limits import CONSULT_CALLS_MAX, CONSULT_STEPS_MAX
from zibaldone.model.consult import Message, ModelReply, ToolCall

_NO_MORE = (
    "Error: this was not carried out; the limit of calls in one turn is reached. Answer now with "
    "what you have."
)
_TOO_MANY = f"Error: only {CONSULT_CALLS_MAX} calls at a time are carried out; ask again."

INTERRUPTED = "Error: this was not carried out; the turn was interrupted. Call it again if needed."


class Conversation(Protocol):
    """Where the loop sends and records."""

    async def send(self, results: tuple[Message, ...]) -> ModelReply:
        """Send the conversation with the results of the last calls, and record the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    reply: ModelReply
    steps: int
    calls: int
    """Tool calls that were carried out."""
    is_cut_short: bool = False
    """The model went on calling tools when it was not to any more."""


async def converse(
    conversation: Conversation,
    functions: Functions,
    *,
    open_calls: tuple[ToolCall, ...] = (),
    on_call: Callable[[ToolCall], Awaitable[None]],
) -> Ended:
    """Until the model answers without a call. `open_calls`: those that a reply before had."""
    results: tuple[Message, ...] = ()
    carried_out = 0
    if open_calls:
        results, carried_out = await _results(open_calls, functions, on_call, is_allowed=True)
    for step in range(1, CONSULT_STEPS_MAX + 1):
        reply = await conversation.send(results)
        calls = reply.message.tool_calls
        if not calls:
            return Ended(reply, step, carried_out)
        is_allowed = step < CONSULT_STEPS_MAX - 1
        results, count = await _results(calls, functions, on_call, is_allowed=is_allowed)
        carried_out += count
    return Ended(reply, CONSULT_STEPS_MAX, carried_out, is_cut_short=True)


async def _results(
    calls: tuple[ToolCall, ...],
    functions: Functions,
    on_call: Callable[[ToolCall], Awaitable[None]],
    *,
    is_allowed: bool,
) -> tuple[tuple[Message, ...], int]:
    """A result for every call: providers refuse a conversation in which one is missing."""
    results: list[Message] = []
    carried_out = 0
    for number, call in enumerate(calls):
        if not is_allowed:
            text = _NO_MORE
        elif number >= CONSULT_CALLS_MAX:
            text = _TOO_MANY
        else:
            await on_call(call)
            text = await functions.run(call)
            carried_out += 1
        results.append(Message("tool", text, tool_call_id=call.call_id))
    return tuple(results), carried_out

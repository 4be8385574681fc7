"""Answers of a model in the formats of the three APIs, whole or as the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from tests.drivers.model_prompts import Usage, tokens_of

CREATED = 1_780_000_000
Api = Literal["chat", "responses", "anthropic"]
Stop = Literal["end", "tools", "length", "refused"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` is JSON as the model wrote it, so it may be malformed."""

    name: str
    arguments: str = "{}"
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: Stop | None = None
    """None: "tools" with calls, "end" without."""
    thinking: str = ""
    """Sent as a thinking block (Anthropic) or a reasoning item (Responses)."""
    piece_chars: int = 16
    """Characters of one event of the stream."""

    @property
    def stopped(self) -> Stop:
        return self.stop or ("tools" if self.calls else "end")

    @property
    def output_tokens(self) -> int:
        written = (self.thinking, self.text, *(call.arguments for call in self.calls))
        return max(1, tokens_of(sum(len(text.encode()) for text in written)))


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and what it is the reply to."""

    reply: Reply
    number: int
    model: str
    usage: Usage
    has_usage: bool = True
    """Chat Completions: whether the stream was asked to end with the usage."""

    @property
    def calls(self) -> list[Call]:
        return [
            Call(call.name, call.arguments, call.call_id or f"call_{self.number}_{index}")
            for index, call in enumerate(self.reply.calls)
        ]

    @property
    def pieces(self) -> list[str]:
        return cut(self.reply.text, self.reply.piece_chars)


def cut(text: str, chars: int) -> list[str]:
    return [text[start : start + chars] for start in range(0, len(text), chars)]


def event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + orjson.dumps(data) + b"\n\n"


def whole(api: Api, answered: Answered) -> dict[str, Any]:
    return {"chat": _chat, "responses": _response, "anthropic": _message}[api](answered)


def stream(api: Api, answered: Answered) -> Iterator[bytes]:
    return {
        "chat": _chat_events,
        "responses": _response_events,
        "anthropic": _message_events,
    }[api](answered)


# Chat Completions

_CHAT_STOPS = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
}


def _chat(answered: Answered) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answered.reply.text or None}
    if answered.calls:
        message["tool_calls"] = [_chat_call(call) for call in answered.calls]
    return {
        "id": f"chatcmpl-{answered.number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": answered.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": _CHAT_STOPS[answered.reply.stopped],
            }
        ],
        "usage": _chat_usage(answered.usage),
    }


def _chat_call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _chat_events(answered: Answered) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return event({**head, "choices": choices, "usage": None})

    head = {
        "id": f"chatcmpl-{answered.number}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": answered.model,
    }
    yield chunk({"role": "assistant", "content": ""})
    for piece in answered.pieces:
        yield chunk({"content": piece})
    for index, call in enumerate(answered.calls):
        opened = _chat_call(Call(call.name, "", call.call_id))
        yield chunk({"tool_calls": [{"index": index, **opened}]})
        for piece in cut(call.arguments, answered.reply.piece_chars):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _CHAT_STOPS[answered.reply.stopped])
    if answered.has_usage:
        yield event({**head, "choices": [], "usage": _chat_usage(answered.usage)})
    yield b"data: [DONE]\n\n"


# Responses


def _response(answered: Answered) -> dict[str, Any]:
    stopped = answered.reply.stopped
    is_cut = stopped in ("length", "refused")
    reason = "max_output_tokens" if stopped == "length" else "content_filter"
    usage = answered.usage
    return {
        "id": f"resp_{answered.number}",
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if is_cut else None,
        "model": answered.model,
        "output": _response_items(answered),
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        },
    }


def _response_items(answered: Answered) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answered.reply.thinking:
        items.append(
            {
                "id": f"rs_{answered.number}",
                "type": "reasoning",
                "summary": [],
                "encrypted_content": f"sealed:{answered.reply.thinking}",
            }
        )
    if answered.reply.text:
        text = {"type": "output_text", "text": answered.reply.text, "annotations": []}
        items.append(
            {
                "id": f"msg_{answered.number}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        )
    items += [
        {
            "id": f"fc_{answered.number}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for index, call in enumerate(answered.calls)
    ]
    return items


def _response_events(answered: Answered) -> Iterator[bytes]:
    sequence = iter(range(1_000_000))

    def typed(kind: str, **data: Any) -> bytes:
        return event({"type": kind, "sequence_number": next(sequence), **data}, kind)

    whole_response = _response(answered)
    opened = {**whole_response, "status": "in_progress", "output": [], "usage": None}
    opened["incomplete_details"] = None
    yield typed("response.created", response=opened)
    yield typed("response.in_progress", response=opened)
    for index, item in enumerate(whole_response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            started = {**item, "status": "in_progress", "content": []}
            yield typed("response.output_item.added", output_index=index, item=started)
            empty = {**item["content"][0], "text": ""}
            yield typed("response.content_part.added", **place, content_index=0, part=empty)
            for piece in answered.pieces:
                yield typed("response.output_text.delta", **place, content_index=0, delta=piece)
            text = item["content"][0]["text"]
            yield typed("response.output_text.done", **place, content_index=0, text=text)
            part = item["content"][0]
            yield typed("response.content_part.done", **place, content_index=0, part=part)
        elif item["type"] == "function_call":
            started = {**item, "status": "in_progress", "arguments": ""}
            yield typed("response.output_item.added", output_index=index, item=started)
            for piece in cut(item["arguments"], answered.reply.piece_chars):
                yield typed("response.function_call_arguments.delta", **place, delta=piece)
            yield typed(
                "response.function_call_arguments.done", **place, arguments=item["arguments"]
            )
        else:
            yield typed("response.output_item.added", output_index=index, item=item)
        yield typed("response.output_item.done", output_index=index, item=item)
    yield typed(f"response.{whole_response['status']}", response=whole_response)


# Anthropic Messages

_MESSAGE_STOPS = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
}


def _message(answered: Answered) -> dict[str, Any]:
    return {
        "id": f"msg_{answered.number}",
        "type": "message",
        "role": "assistant",
        "model": answered.model,
        "content": [
            {**block, "input": _parsed(block["input"])} if block["type"] == "tool_use" else block
            for block in _message_blocks(answered)
        ],
        "stop_reason": _MESSAGE_STOPS[answered.reply.stopped],
        "stop_sequence": None,
        "usage": _message_usage(answered.usage),
    }


def _parsed(arguments: str) -> Any:
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {}


def _message_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.written_tokens,
        "cache_creation_input_tokens": usage.written_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


def _message_blocks(answered: Answered) -> list[dict[str, Any]]:
    """The blocks; the input of a tool call is still text here."""
    blocks: list[dict[str, Any]] = []
    if answered.reply.thinking:
        signature = f"signed:{answered.number}"
        thinking = answered.reply.thinking
        blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
    if answered.reply.text:
        blocks.append({"type": "text", "text": answered.reply.text})
    blocks += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments}
        for call in answered.calls
    ]
    return blocks


def _message_events(answered: Answered) -> Iterator[bytes]:
    def typed(kind: str, **data: Any) -> bytes:
        return event({"type": kind, **data}, kind)

    opened = {**_message(answered), "content": [], "stop_reason": None}
    opened["usage"] = {**opened["usage"], "output_tokens": 1}
    yield typed("message_start", message=opened)
    chars = answered.reply.piece_chars
    for index, block in enumerate(_message_blocks(answered)):
        empty, deltas = _block_deltas(block, chars)
        yield typed("content_block_start", index=index, content_block=empty)
        if index == 0:
            yield typed("ping")
        for delta in deltas:
            yield typed("content_block_delta", index=index, delta=delta)
        yield typed("content_block_stop", index=index)
    stop = {"stop_reason": _MESSAGE_STOPS[answered.reply.stopped], "stop_sequence": None}
    usage = _message_usage(answered.usage)
    yield typed("message_delta", delta=stop, usage=usage)
    yield typed("message_stop")


def _block_deltas(block: dict[str, Any], chars: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The block as it starts, and what then comes."""
    if block["type"] == "text":
        pieces = cut(block["text"], chars)
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in pieces]
    if block["type"] == "thinking":
        pieces = cut(block["thinking"], chars)
        deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    pieces = ["", *cut(block["input"], chars)]
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in pieces]
    return {**block, "input": {}}, deltas

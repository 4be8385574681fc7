"""Anthropic's Messages, with marks where its prompt cache may be cut."""

from __future__ import annotations

from typing import Any

from zibaldone.consult.providers.values import (
    Malformed,
    Text,
    arguments_object,
    clean,
    count,
    integer,
    mapping,
    reply,
    string,
    tool_call,
)
from zibaldone.model.consult import Message, ModelReply, ModelRequest, Stop, Usage

_API = "anthropic"
_EFFORTS = {"none": "low", "minimal": "low"}
_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refused",
}
_HOUR_SECONDS = 3_600
_EMPTY = "(empty)"
"""The API takes no empty text."""
_MARKS_MAX = 3
"""Beside the one after tools and system; the API takes four."""


class AnthropicMessages:
    path = "/v1/messages"
    optional: dict[str, str] = {}

    def __init__(self, model: str, *, cache_seconds: int, transform_schema: Any) -> None:
        self._model = model
        self._transform_schema = transform_schema
        self._mark = {"type": "ephemeral"}
        if cache_seconds >= _HOUR_SECONDS:
            self._mark["ttl"] = "1h"

    def body(self, request: ModelRequest, left_out: frozenset[str]) -> dict[str, Any]:
        """Marks do not count as content: a message whose mark has moved on is served from the
        cache."""
        del left_out
        body: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            "max_tokens": request.output_tokens,
        }
        config: dict[str, Any] = {}
        if request.reasoning_effort:
            config["effort"] = _EFFORTS.get(request.reasoning_effort, request.reasoning_effort)
        if request.output_schema is not None:
            schema = self._schema(request.output_schema)
            config["format"] = {"type": "json_schema", "schema": schema}
        if config:
            body["output_config"] = config
        tools: list[dict[str, Any]] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            }
            for tool in request.tools
        ]
        if request.system.strip():
            system = {"type": "text", "text": request.system, "cache_control": self._mark}
            body["tools"] = tools
            body["system"] = [system]
        elif tools:
            tools[-1]["cache_control"] = self._mark
            body["tools"] = tools
        body["messages"] = self._messages(request)
        return body

    def reading(self, request: ModelRequest) -> MessageReading:
        del request
        return MessageReading(self._model)

    def _schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema in the subset that the API takes, as its own library makes it."""
        try:
            transformed: dict[str, Any] = self._transform_schema(schema)
        except Exception:  # the library asserts what it cannot transform; the API says why
            return schema
        return transformed

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        marked = set(sorted(request.breakpoints)[-_MARKS_MAX:])
        messages: list[dict[str, Any]] = []
        was_result = False
        for index, message in enumerate(request.messages):
            blocks = self._blocks(message)
            if index in marked:
                blocks[-1] = {**blocks[-1], "cache_control": self._mark}
            is_result = message.role == "tool"
            if is_result and was_result:  # the results of one answer's calls are one message
                messages[-1]["content"] += blocks
            else:
                role = "assistant" if message.role == "assistant" else "user"
                messages.append({"role": role, "content": blocks})
            was_result = is_result
        return messages

    def _blocks(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "tool":
            return [
                {
                    "type": "tool_result",
                    "tool_use_id": message.tool_call_id,
                    "content": message.text or _EMPTY,
                }
            ]
        text = [{"type": "text", "text": message.text}] if message.text.strip() else []
        calls = [
            {
                "type": "tool_use",
                "id": call.call_id,
                "name": call.name,
                "input": arguments_object(call.arguments),
            }
            for call in message.tool_calls
        ]
        blocks = self._in_order(message, calls) or [*text, *calls]
        return blocks or [{"type": "text", "text": _EMPTY}]

    def _in_order(
        self, message: Message, calls: list[dict[str, Any]]
    ) -> list[dict[str, Any]] | None:
        """The blocks with what the model thought between them; None if it is not known, or was
        thought by another model."""
        opaque = message.opaque
        if not isinstance(opaque, dict) or opaque.get("api") != _API:
            return None
        if opaque.get("model") != self._model:
            return None
        blocks: list[dict[str, Any]] = []
        start, calls = 0, list(calls)
        for place in opaque["blocks"]:
            if place["type"] == "text":
                text = message.text[start : start + place["chars"]]
                start += place["chars"]
                if text.strip():
                    blocks.append({"type": "text", "text": text})
            elif place["type"] != "tool_use":
                blocks.append(place)
            elif calls:
                blocks.append(calls.pop(0))
        return blocks


class MessageReading:
    """Puts an answer together from the events of its stream."""

    def __init__(self, model: str) -> None:
        self._asked_model = model
        self._model = model
        self._blocks: dict[int, _Block] = {}
        self._stop = ""
        self._usage: dict[str, Any] = {}
        self.is_complete = False

    def add(self, event: Any) -> str:
        data = mapping(event)
        match string(data.get("type")):
            case "message_start":
                message = mapping(data.get("message"))
                self._model = string(message.get("model")) or self._model
                self._take_usage(message.get("usage"))
            case "content_block_start":
                block = _Block(mapping(data.get("content_block")))
                self._blocks[integer(data.get("index"))] = block
                return block.text.add(block.first) if block.kind == "text" else ""
            case "content_block_delta":
                block = self._blocks.get(integer(data.get("index")), _Block({}))
                return block.add(mapping(data.get("delta")))
            case "message_delta":
                self._stop = string(mapping(data.get("delta")).get("stop_reason")) or self._stop
                self._take_usage(data.get("usage"))
            case "message_stop":
                self.is_complete = True
        return ""

    def _take_usage(self, usage: Any) -> None:
        """Counts of a later event replace those of an earlier one."""
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})

    def finish(self) -> ModelReply:
        if not self._stop or not self.is_complete:
            raise Malformed("the answer ended without a reason")
        blocks = [block for _, block in sorted(self._blocks.items())]
        calls = [
            tool_call(block.call_id, block.name, block.input_text(), index)
            for index, block in enumerate(block for block in blocks if block.kind == "tool_use")
        ]
        places = [place for block in blocks if (place := block.place()) is not None]
        has_thinking = any(block.sealed() is not None for block in blocks)
        return reply(
            "".join(block.text.whole() for block in blocks if block.kind == "text"),
            calls,
            _STOPS.get(self._stop, "end"),
            usage=self._counted(),
            model=self._model,
            opaque=(
                {"api": _API, "model": self._asked_model, "blocks": places}
                if has_thinking
                else None
            ),
        )

    def _counted(self) -> Usage:
        read = count(self._usage.get("cache_read_input_tokens"))
        written = count(self._usage.get("cache_creation_input_tokens"))
        return Usage(
            input_tokens=count(self._usage.get("input_tokens")) + read + written,
            cached_tokens=read,
            cache_write_tokens=written,
            output_tokens=count(self._usage.get("output_tokens")),
        )


class _Block:
    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = string(start.get("type"))
        self.call_id = string(start.get("id"))
        self.name = string(start.get("name"))
        self.first = string(start.get("text"))
        self.text = Text()
        self._data = string(start.get("data"))
        self._thinking = [string(start.get("thinking"))]
        self._signature = [string(start.get("signature"))]
        self._input: list[str] = []

    def add(self, delta: dict[str, Any]) -> str:
        match string(delta.get("type")):
            case "text_delta" if self.kind == "text":
                return self.text.add(string(delta.get("text")))
            case "input_json_delta":
                self._input.append(string(delta.get("partial_json")))
            case "thinking_delta":
                self._thinking.append(string(delta.get("thinking")))
            case "signature_delta":
                self._signature.append(string(delta.get("signature")))
        return ""

    def input_text(self) -> str:
        return "".join(self._input) or "{}"

    def sealed(self) -> dict[str, Any] | None:
        """The block as it is sent back, if it is one of thinking."""
        if self.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": clean(self._data)}
        if self.kind == "thinking" and any(self._signature):
            thinking = clean("".join(self._thinking))
            signature = clean("".join(self._signature))
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        return None

    def place(self) -> dict[str, Any] | None:
        """What takes the block's place in a list of blocks: the rest is in the message itself."""
        if self.kind == "text":
            return {"type": "text", "chars": len(self.text.whole())}
        return {"type": "tool_use"} if self.kind == "tool_use" else self.sealed()

"""OpenAI's Responses, without state at the provider: every request carries the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zibaldone.consult.providers.values import (
    Malformed,
    Text,
    arguments_text,
    clean,
    count,
    integer,
    is_strict,
    mapping,
    reply,
    sequence,
    string,
    tool_call,
)
from zibaldone.model.consult import Message, ModelReply, ModelRequest, Stop, ToolCall, Usage

_API = "responses"


class Responses:
    path = "/responses"
    optional = {
        "prompt_cache_key": "prompt_cache_key",
        "'include'": "include",
        "encrypted": "include",
    }

    def __init__(self, model: str) -> None:
        self._model = model

    def body(self, request: ModelRequest, left_out: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model, "stream": True, "store": False}
        if "include" not in left_out:
            body["include"] = ["reasoning.encrypted_content"]
        body["max_output_tokens"] = request.output_tokens
        if request.cache_key and "prompt_cache_key" not in left_out:
            body["prompt_cache_key"] = request.cache_key
        if request.reasoning_effort:
            body["reasoning"] = {"effort": request.reasoning_effort}
        if request.output_schema is not None:
            form = {
                "type": "json_schema",
                "name": "answer",
                "strict": is_strict(request.output_schema),
                "schema": request.output_schema,
            }
            body["text"] = {"format": form}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.system:
            body["instructions"] = request.system
        body["input"] = [item for message in request.messages for item in self._items(message)]
        return body

    def reading(self, request: ModelRequest) -> ResponseReading:
        return ResponseReading(self._model, request.output_tokens)

    def _items(self, message: Message) -> Iterator[dict[str, Any]]:
        if message.role == "tool":
            yield {
                "type": "function_call_output",
                "call_id": message.tool_call_id,
                "output": message.text,
            }
        elif message.role == "user":
            yield {"type": "message", "role": "user", "content": message.text}
        else:
            yield from self._answer(message)

    def _answer(self, message: Message) -> Iterator[dict[str, Any]]:
        """An earlier answer, with what the model thought in its place. That is sealed by the
        provider; another model cannot open it."""
        calls = [
            {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": arguments_text(call.arguments),
            }
            for call in message.tool_calls
        ]
        opaque = message.opaque
        is_ours = isinstance(opaque, dict) and opaque.get("api") == _API
        if not is_ours or opaque.get("model") != self._model:
            if message.text or not calls:
                yield _said(message.text)
            yield from calls
            return
        start = 0
        for place in opaque["items"]:
            if place["type"] == "message":
                yield _said(message.text[start : start + place["chars"]])
                start += place["chars"]
            elif place["type"] != "function_call":
                yield place
            elif calls:
                yield calls.pop(0)


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


class ResponseReading:
    """Puts an answer together from the events of its stream."""

    def __init__(self, model: str, output_tokens: int) -> None:
        self._asked_model = model
        self._output_tokens = output_tokens
        self._model = model
        self._texts: dict[tuple[int, int], Text] = {}
        self._refusal = Text()
        self._items: dict[int, dict[str, Any]] = {}
        self._final: dict[str, Any] | None = None
        self.is_complete = False

    def add(self, event: Any) -> str:
        data = mapping(event)
        match string(data.get("type")):
            case "response.output_text.delta":
                place = (integer(data.get("output_index")), integer(data.get("content_index")))
                return self._texts.setdefault(place, Text()).add(string(data.get("delta")))
            case "response.output_item.done":
                self._items[integer(data.get("output_index"))] = mapping(data.get("item"))
            case "response.completed" | "response.incomplete":
                self._final = mapping(data.get("response"))
                self.is_complete = True
            case "response.failed":
                raise Failed(mapping(mapping(data.get("response")).get("error")))
            case "error":
                raise Failed(mapping(data.get("error")) or data)
        return ""

    def finish(self) -> ModelReply:
        if self._final is None:
            raise Malformed("the answer ended without a reason")
        output = sequence(self._final.get("output"))
        items = dict(enumerate(map(mapping, output))) or self._items
        texts: list[str] = []
        calls: list[ToolCall] = []
        places: list[dict[str, Any]] = []
        for index, item in sorted(items.items()):
            match string(item.get("type")):
                case "message":
                    said = "".join(_texts(item, "text"))
                    texts.append(said)
                    self._refusal.add("".join(_texts(item, "refusal")))
                    places.append({"type": "message", "chars": len(said)})
                case "function_call":
                    call_id, name = string(item.get("call_id")), string(item.get("name"))
                    arguments = string(item.get("arguments"))
                    calls.append(tool_call(call_id, name, arguments, len(calls)))
                    places.append({"type": "function_call"})
                case "reasoning" if item.get("encrypted_content"):
                    places.append(_sealed(item, index))
        text = "".join(texts) or "".join(part.whole() for _, part in sorted(self._texts.items()))
        refusal = self._refusal.whole()
        is_sealed = any(place["type"] == "reasoning" for place in places)
        return reply(
            text or refusal,
            calls,
            "refused" if refusal else self._stop(),
            usage=_usage(self._final.get("usage")),
            model=string(self._final.get("model")) or self._model,
            opaque=(
                {"api": _API, "model": self._asked_model, "items": places} if is_sealed else None
            ),
        )

    def _stop(self) -> Stop:
        """Some servers call an answer complete that was cut at the length it may have."""
        final = self._final or {}
        if final.get("status") != "incomplete":
            is_cut = _usage(final.get("usage")).output_tokens >= self._output_tokens
            return "length" if is_cut else "end"
        reason = string(mapping(final.get("incomplete_details")).get("reason"))
        return "refused" if reason == "content_filter" else "length"


class Failed(Exception):
    """An error that came as an event of the stream."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__("error")
        self.error = error


def _texts(item: dict[str, Any], name: str) -> list[str]:
    parts = map(mapping, sequence(item.get("content")))
    return [clean(string(part.get(name))) for part in parts]


def _sealed(item: dict[str, Any], index: int) -> dict[str, Any]:
    """A reasoning item as it is sent back."""
    return {
        "type": "reasoning",
        "id": clean(string(item.get("id"))) or f"rs_{index}",
        "summary": [
            {"type": "summary_text", "text": clean(string(mapping(part).get("text")))}
            for part in sequence(item.get("summary"))
        ],
        "encrypted_content": clean(string(item.get("encrypted_content"))),
    }


def _usage(value: Any) -> Usage:
    usage = value if isinstance(value, dict) else {}
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        cached_tokens=count(details.get("cached_tokens")),
        cache_write_tokens=count(details.get("cache_write_tokens")),
        output_tokens=count(usage.get("output_tokens")),
    )

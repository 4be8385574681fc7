"""OpenAI's Chat Completions, the API that all compatible endpoints have."""

from __future__ import annotations

from typing import Any

from zibaldone.consult.providers.values import (
    Malformed,
    Text,
    arguments_text,
    count,
    integer,
    is_strict,
    mapping,
    reply,
    sequence,
    string,
    tool_call,
    write_json,
)
from zibaldone.model.consult import Message, ModelReply, ModelRequest, Stop, Usage

_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refused"}


class ChatCompletions:
    path = "/chat/completions"
    optional = {
        "prompt_cache_key": "prompt_cache_key",
        "stream_options": "stream_options",
        "max_tokens": "max_tokens",
        "max_completion_tokens": "max_tokens",
        "alternate": "neighbours",
    }
    """What a server may refuse, by the words it then uses. The room for the answer has an old name,
    which compatible servers know, and a new one. Templates of some models want messages of user and
    assistant in turn: neighbours of one role are then joined."""

    def __init__(self, model: str, *, is_openai: bool) -> None:
        self._model = model
        self._is_openai = is_openai

    def body(self, request: ModelRequest, left_out: frozenset[str]) -> dict[str, Any]:
        """The messages come last, so that a body begins like that of the turn before."""
        is_new = self._is_openai != ("max_tokens" in left_out)
        body: dict[str, Any] = {"model": self._model, "stream": True}
        if "stream_options" not in left_out:
            body["stream_options"] = {"include_usage": True}
        body["max_completion_tokens" if is_new else "max_tokens"] = request.output_tokens
        if request.cache_key and "prompt_cache_key" not in left_out:
            body["prompt_cache_key"] = request.cache_key
        if request.reasoning_effort:
            body["reasoning_effort"] = request.reasoning_effort
        if request.output_schema is not None:
            schema = {
                "name": "answer",
                "strict": is_strict(request.output_schema),
                "schema": request.output_schema,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
        system = [{"role": "system", "content": request.system}] if request.system else []
        messages = list(map(_message, request.messages))
        body["messages"] = [*system, *(_joined(messages) if "neighbours" in left_out else messages)]
        return body

    def reading(self, request: ModelRequest) -> ChatReading:
        del request
        return ChatReading(self._model)


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    return {
        "role": message.role,
        "content": message.text or None,
        "tool_calls": [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
            }
            for call in message.tool_calls
        ],
    }


def _joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The texts of a user that follow each other become one. What one request joins stays joined in
    later ones, because an answer comes after it."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and joined and joined[-1]["role"] == "user":
            text = f"{joined[-1]['content']}\n\n{message['content']}"
            joined[-1] = {"role": "user", "content": text}
        else:
            joined.append(message)
    return joined


class ChatReading:
    """Puts an answer together from the chunks of its stream."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text = Text()
        self._refusal = Text()
        self._calls: dict[int, _Call] = {}
        self._finish = ""
        self._usage = Usage()
        self.is_complete = False
        """The stream goes on after the answer: with its usage."""

    def add(self, event: Any) -> str:
        """The text that this event adds."""
        chunk = mapping(event)
        self._model = string(chunk.get("model")) or self._model
        if chunk.get("usage") is not None:
            self._usage = _usage(mapping(chunk["usage"]))
        added = ""
        for value in sequence(chunk.get("choices")):
            choice = mapping(value)
            if integer(choice.get("index")) != 0:
                continue
            delta = mapping(choice.get("delta"))
            self._refusal.add(string(delta.get("refusal")))
            added += self._text.add(_content(delta.get("content")))
            for position, call in enumerate(sequence(delta.get("tool_calls"))):
                self._add_call(mapping(call), position)
            self._finish = string(choice.get("finish_reason")) or self._finish
        return added

    def _add_call(self, call: dict[str, Any], position: int) -> None:
        given = call.get("index")
        call_id = string(call.get("id"))
        # Servers without an index send whole calls, each with an id of its own.
        next_index = len(self._calls) if call_id else position
        index = next_index if given is None else integer(given)
        known = self._calls.setdefault(index, _Call())
        function = mapping(call.get("function"))
        known.call_id = known.call_id or call_id
        known.name = known.name or string(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = write_json(arguments).decode()
        known.arguments.append(string(arguments))

    def finish(self) -> ModelReply:
        """Raises Malformed if the stream ended in the middle of the answer."""
        if not self._finish:
            raise Malformed("the answer ended without a reason")
        refusal = self._refusal.whole()
        calls = [
            tool_call(call.call_id, call.name, "".join(call.arguments), index)
            for index, (_, call) in enumerate(sorted(self._calls.items()))
        ]
        return reply(
            self._text.whole() or refusal,
            calls,
            "refused" if refusal else _STOPS.get(self._finish, "end"),
            usage=self._usage,
            model=self._model,
        )


class _Call:
    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []


def _content(content: Any) -> str:
    """Text, or the text of parts, as some servers send it."""
    if isinstance(content, list):
        return "".join(string(mapping(part).get("text")) for part in content)
    return string(content)


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        cached_tokens=count(details.get("cached_tokens")),
        cache_write_tokens=count(details.get("cache_write_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
    )

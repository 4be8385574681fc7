"""Talking to the tests' own provider through ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from tests.drivers.model_server import ModelServer
from zibaldone.consult.providers.open import open_provider
from zibaldone.consult.providers.port import Bounds
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, ModelReply, ModelRequest, ToolDefinition

Api = Literal["chat", "responses", "anthropic"]
APIS: tuple[Api, ...] = ("chat", "responses", "anthropic")
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
KEY = "key-of-the-tests"
QUICK = Bounds(pause_seconds=0.01)

PATH_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS = (
    ToolDefinition("search_files", "Search.", {"type": "object", "properties": {}}),
    ToolDefinition("read_file", "Read a file.", PATH_SCHEMA),
)


def assistant_of(models: ModelServer, api: Api | Literal["auto"], **options: Any) -> Assistant:
    url = models.anthropic_url if api == "anthropic" else models.url
    given: dict[str, Any] = {"api_key_env": "TESTS_KEY", "base_url": url, "model": "model"}
    if api != "anthropic":
        given["api"] = api
    given.update(options)
    return Assistant("reviewer", "anthropic" if api == "anthropic" else "openai", **given)


def ask(text: str = "Hello", **options: Any) -> ModelRequest:
    return request_of((Message("user", text),), **options)


def request_of(messages: tuple[Message, ...], **options: Any) -> ModelRequest:
    given: dict[str, Any] = {"system": "You review code.", "tools": TOOLS, "output_tokens": 500}
    given.update(options)
    return ModelRequest(messages=messages, **given)


def send(
    assistant: Assistant,
    *requests: ModelRequest,
    bounds: Bounds = QUICK,
    on_text: Callable[[str], None] | None = None,
) -> list[ModelReply]:
    """Send them one after the other over one provider."""

    async def tell(piece: str) -> None:
        if on_text is not None:
            on_text(piece)

    async def talk() -> list[ModelReply]:
        provider = open_provider(assistant, {"TESTS_KEY": KEY}, bounds=bounds)
        try:
            return [await provider.send(request, on_text=tell) for request in requests]
        finally:
            await provider.close()

    return asyncio.run(talk())


def send_one(assistant: Assistant, request: ModelRequest, **options: Any) -> ModelReply:
    (reply,) = send(assistant, request, **options)
    return reply

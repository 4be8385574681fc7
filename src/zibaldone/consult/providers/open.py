"""Opens the provider of an assistant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zibaldone import extras
from zibaldone.consult.providers.anthropic_messages import AnthropicMessages
from zibaldone.consult.providers.connection import Connection
from zibaldone.consult.providers.openai_chat import ChatCompletions
from zibaldone.consult.providers.openai_responses import Responses
from zibaldone.consult.providers.port import Bounds, OnText, Provider
from zibaldone.errors import NotConfigured, ProviderRefused
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import ModelReply, ModelRequest

OPENAI_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com"

_GONE_STATUSES = (404, 405)

_has_responses: dict[str, bool] = {OPENAI_URL: True}
"""What servers were found to have, by their URL, as long as this process lives."""


def open_provider(
    assistant: Assistant, environment: Mapping[str, str], *, bounds: Bounds | None = None
) -> Provider:
    """The provider; nothing is imported or sent yet.

    Of the environment only the variable that the assistant names is read. NotConfigured if it is
    not set.
    """
    key = key_of(assistant, environment)
    bounds = bounds or Bounds()
    if assistant.provider == "anthropic":
        return _Anthropic(assistant, key, bounds)
    return _OpenAI(assistant, key, bounds)


def key_of(assistant: Assistant, environment: Mapping[str, str]) -> str:
    """The API key; empty if the assistant has none. NotConfigured if its variable is not set."""
    if not assistant.api_key_env:
        return ""
    key = environment.get(assistant.api_key_env, "").strip()
    if not key:
        raise NotConfigured(
            f"The environment variable {assistant.api_key_env} is not set: it should hold the "
            f"API key of assistant {assistant.name} (assistants.{assistant.name}.api_key_env).",
            assistant=assistant.name,
        )
    return key


class _Anthropic:
    def __init__(self, assistant: Assistant, key: str, bounds: Bounds) -> None:
        url = (assistant.base_url or _ANTHROPIC_URL).rstrip("/").removesuffix("/v1")
        self._connection = Connection(assistant, url, key, bounds, _load_anthropic)

    async def send(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        sdk = await self._connection.sdk()
        assistant = self._connection.assistant
        api = AnthropicMessages(
            assistant.model,
            cache_seconds=assistant.cache_seconds,
            transform_schema=sdk.transform_schema,
        )
        return await self._connection.send(api, request, on_text)

    async def close(self) -> None:
        await self._connection.close()


class _OpenAI:
    def __init__(self, assistant: Assistant, key: str, bounds: Bounds) -> None:
        url = (assistant.base_url or OPENAI_URL).rstrip("/")
        self._connection = Connection(assistant, url, key, bounds, _load_openai)

    async def send(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        assistant, url = self._connection.assistant, self._connection.url
        if assistant.api == "auto" and url not in _has_responses:
            await self._look_for_responses()
        is_chat = assistant.api == "chat" or not _has_responses.get(url, True)
        if not is_chat or assistant.api == "responses":
            try:
                return await self._send_responses(request, on_text)
            except ProviderRefused as refused:
                is_gone = refused.details.get("provider_status") in _GONE_STATUSES
                if not is_gone or assistant.api != "auto" or await self._look_for_responses():
                    raise
        return await self._send_chat(request, on_text)

    async def _look_for_responses(self) -> bool:
        url = self._connection.url
        _has_responses[url] = await self._connection.has(Responses.path)
        return _has_responses[url]

    async def _send_responses(self, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        assistant = self._connection.assistant
        table = f"assistants.{assistant.name}"
        hint = f' If it has Chat Completions only, set {table}.api = "chat".'
        api = Responses(assistant.model)
        return await self._connection.send(api, request, on_text, hint=hint)

    async def _send_chat(self, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        is_openai = self._connection.url == OPENAI_URL
        api = ChatCompletions(self._connection.assistant.model, is_openai=is_openai)
        return await self._connection.send(api, request, on_text)

    async def close(self) -> None:
        await self._connection.close()


def _load_openai() -> Any:
    return extras.require("consult", "openai")


def _load_anthropic() -> Any:
    return extras.require("consult", "anthropic")

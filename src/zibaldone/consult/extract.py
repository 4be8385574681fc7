"""One question to an assistant, outside of any session: within the key's budget, and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.access.share import SHARE
from zibaldone.consult.budget import cost_of, reserved, worst_case
from zibaldone.consult.providers.port import Provider
from zibaldone.consult.state import day_of
from zibaldone.errors import DeadlineExceeded, ProviderRefused, SessionFull
from zibaldone.limits import Limits
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, ModelReply, ModelRequest, Spent
from zibaldone.model.instant import now_us
from zibaldone.pack.tokens import token_counter
from zibaldone.store.port import Store


@dataclass(frozen=True, slots=True)
class AssistantExtractor:
    """As `memory.job.Extractor`."""

    store: Store
    limits: Limits
    assistant: Assistant
    open_provider: Callable[[Assistant], Provider]
    clock: Callable[[], int] = now_us

    async def ask(
        self, tenant: Tenant, key_id: str, *, system: str, text: str, schema: dict[str, Any]
    ) -> str:
        shared = SHARE.set(key_id)
        try:
            most = await self._worst_case(system, text, schema)
            day = day_of(self.clock())
            async with reserved(self.store, tenant, key_id, day, most, self.limits):
                reply = await self._send(
                    ModelRequest(
                        system=system,
                        tools=(),
                        messages=(Message("user", text),),
                        output_schema=schema,
                        output_tokens=self.assistant.output_tokens,
                    )
                )
                await self._record(tenant, key_id, reply)
        finally:
            SHARE.reset(shared)
        if reply.stop == "refused":
            raise ProviderRefused(f"{self.assistant.name} refused to answer.")
        if reply.stop == "length":
            raise ProviderRefused(
                f"{self.assistant.name} was cut off after {self.assistant.output_tokens} tokens "
                "(output_tokens of the assistant)."
            )
        return reply.message.text

    async def _worst_case(self, system: str, text: str, schema: dict[str, Any]) -> Spent:
        """What it may spend. SessionFull: it is too long."""
        written = system + text + orjson.dumps(schema).decode()
        assistant = self.assistant
        tokens = await asyncio.to_thread(lambda: token_counter(assistant).count(written))
        if tokens + assistant.output_tokens > assistant.context_tokens:
            raise SessionFull(
                f"What is to be sent has {tokens} tokens; the context window of {assistant.name} "
                f"has {assistant.context_tokens}, {assistant.output_tokens} of them for answers.",
                tokens=tokens,
                context_tokens=assistant.context_tokens,
            )
        return worst_case(tokens, assistant)

    async def _send(self, request: ModelRequest) -> ModelReply:
        provider = self.open_provider(self.assistant)
        try:
            async with asyncio.timeout(self.assistant.seconds_max):
                return await provider.send(request)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.assistant.name} took longer than {self.assistant.seconds_max} s "
                "(seconds_max of the assistant)."
            ) from None
        finally:
            await provider.close()

    async def _record(self, tenant: Tenant, key_id: str, reply: ModelReply) -> None:
        tokens = reply.usage.input_tokens + reply.usage.output_tokens
        spent = Spent(tokens, cost_of(reply.usage, self.assistant))
        day = day_of(self.clock())
        await self.store.write(tenant, lambda writer: writer.sessions.spend(key_id, day, spent))

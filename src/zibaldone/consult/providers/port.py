"""What the rest of the product asks of a provider of models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from zibaldone.limits import (
    PROVIDER_ANSWER_BYTES_MAX,
    PROVIDER_CONNECT_SECONDS_MAX,
    PROVIDER_EVENT_BYTES_MAX,
    PROVIDER_IDLE_SECONDS_MAX,
    PROVIDER_PAUSE_SECONDS,
    PROVIDER_RETRY_AFTER_SECONDS_MAX,
    PROVIDER_TRIES_MAX,
)
from zibaldone.model.consult import ModelReply, ModelRequest

OnText = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a provider is waited for, and how much of it is read."""

    tries_max: int = PROVIDER_TRIES_MAX
    pause_seconds: float = PROVIDER_PAUSE_SECONDS
    retry_after_seconds_max: float = PROVIDER_RETRY_AFTER_SECONDS_MAX
    connect_seconds_max: float = PROVIDER_CONNECT_SECONDS_MAX
    idle_seconds_max: float = PROVIDER_IDLE_SECONDS_MAX
    event_bytes_max: int = PROVIDER_EVENT_BYTES_MAX
    answer_bytes_max: int = PROVIDER_ANSWER_BYTES_MAX


class Provider(Protocol):
    async def send(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """Ask the model; `on_text` gets the text of the answer piece by piece as it comes.

        A reply is complete: its message can be sent back as part of the next request. Tool calls of
        an answer that was cut off (`length`) or refused are dropped.

        Raises ProviderRefused, ProviderBusy, ProviderUnavailable or SessionFull.
        """

    async def close(self) -> None: ...

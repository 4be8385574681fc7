"""What a call costs, and whether its key may still spend that much today."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from zibaldone.access.principal import Tenant
from zibaldone.errors import BudgetExceeded, ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Spent, Usage
from zibaldone.store.port import Store, Writer

_log = logging.getLogger("zibaldone.consult")

_MILLION = 1_000_000


def cost_of(usage: Usage, assistant: Assistant) -> float:
    """In the currency of the prices. Where a price for cached tokens is missing, that of new ones
    counts."""
    prices = assistant.prices
    plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    return (
        max(plain, 0) * prices.input
        + usage.cached_tokens * (prices.cached or prices.input)
        + usage.cache_write_tokens * (prices.cache_write or prices.input)
        + usage.output_tokens * prices.output
    ) / _MILLION


def worst_case(input_tokens: int, assistant: Assistant) -> Spent:
    """What a request spends if nothing is cached and the answer is as long as it may be."""
    prices = assistant.prices
    price = max(prices.input, prices.cache_write)
    cost = (input_tokens * price + assistant.output_tokens * prices.output) / _MILLION
    return Spent(input_tokens + assistant.output_tokens, cost)


@asynccontextmanager
async def reserved(
    store: Store, tenant: Tenant, owner: str, day: int, more: Spent, limits: Limits
) -> AsyncIterator[None]:
    """Hold the worst case of a request while it runs: requests of a key that run at the same time,
    in any process, never spend more than the key may. BudgetExceeded: it may not.

    A server that is killed meanwhile leaves it reserved; that counts until the day is over.
    """
    if limits.consult_tokens_per_day is None and limits.consult_cost_per_day is None:
        yield
        return

    def reserve(writer: Writer) -> None:
        total = writer.sessions.spend(owner, day, more)
        before = Spent(total.tokens - more.tokens, total.cost - more.cost)
        require_budget(before, more, limits)

    def release(writer: Writer) -> None:
        writer.sessions.spend(owner, day, Spent(-more.tokens, -more.cost))

    await store.write(tenant, reserve)
    try:
        yield
    finally:
        try:
            await store.write(tenant, release)
        except ZibaldoneError as error:
            _log.warning("a reserved budget was not released: %s [%s]", error.message, error.code)


def require_budget(spent: Spent, more: Spent, limits: Limits) -> None:
    """BudgetExceeded: with `more` the key would have spent more today than it may."""
    tokens_max, cost_max = limits.consult_tokens_per_day, limits.consult_cost_per_day
    if tokens_max is not None and spent.tokens + more.tokens > tokens_max:
        raise BudgetExceeded(
            f"This key may spend {tokens_max} tokens on assistants per day. It has spent "
            f"{spent.tokens}, and this request may take {more.tokens}; nothing was sent. Send "
            "less, or wait until the next day (UTC).",
            tokens_max=tokens_max,
            tokens_spent=spent.tokens,
            tokens_needed=more.tokens,
        )
    if cost_max is not None and spent.cost + more.cost > cost_max:
        raise BudgetExceeded(
            f"This key may spend {cost_max:g} on assistants per day. It has spent {spent.cost:.4f},"
            f" and this request may cost {more.cost:.4f}; nothing was sent. Send less, or wait "
            "until the next day (UTC).",
            cost_max=cost_max,
            cost_spent=spent.cost,
            cost_needed=more.cost,
        )

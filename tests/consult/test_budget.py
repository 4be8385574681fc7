"""What a request costs, and what it may cost at most."""

from __future__ import annotations

import pytest

from zibaldone.consult.budget import cost_of, worst_case
from zibaldone.model.assistant import Assistant, Prices
from zibaldone.model.consult import Usage

USED = Usage(input_tokens=1_000_000, cached_tokens=400_000, cache_write_tokens=100_000)


def assistant(**prices: float) -> Assistant:
    return Assistant(
        "reviewer",
        "openai",
        "gpt-4.1",
        roots=("/",),
        output_tokens=200_000,
        prices=Prices(**prices),
    )


def test_each_kind_of_token_costs_its_price() -> None:
    priced = assistant(input=3.0, cached=0.5, cache_write=4.0, output=15.0)
    assert cost_of(USED, priced) == pytest.approx(0.5 * 3.0 + 0.4 * 0.5 + 0.1 * 4.0)
    assert cost_of(Usage(output_tokens=100_000), priced) == pytest.approx(1.5)


def test_without_a_price_of_their_own_cached_tokens_cost_what_new_ones_do() -> None:
    assert cost_of(USED, assistant(input=3.0)) == pytest.approx(3.0)


def test_at_most_nothing_is_cached_and_the_answer_is_as_long_as_it_may_be() -> None:
    written = worst_case(1_000_000, assistant(input=3.0, cached=0.5, cache_write=4.0, output=15.0))
    assert written.tokens == 1_200_000
    assert written.cost == pytest.approx(4.0 + 0.2 * 15.0)
    plain = worst_case(1_000_000, assistant(input=3.0, cached=0.5, output=15.0))
    assert plain.cost == pytest.approx(3.0 + 0.2 * 15.0)

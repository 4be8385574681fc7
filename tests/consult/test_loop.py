"""How often a model may call functions in one turn."""

from __future__ import annotations

import asyncio

from zibaldone.consult.functions import Functions
from zibaldone.consult.loop import Ended, converse
from zibaldone.limits import CONSULT_CALLS_MAX, CONSULT_STEPS_MAX
from zibaldone.model.consult import Message, ModelReply, ToolCall, Usage


class Calling:
    """A model that calls so many functions at a time, so often, and then answers."""

    def __init__(self, calls: int, times: int) -> None:
        self._calls = calls
        self._times = times
        self.given: list[tuple[Message, ...]] = []

    async def send(self, results: tuple[Message, ...]) -> ModelReply:
        self.given.append(results)
        numbers = range(self._calls if len(self.given) <= self._times else 0)
        calls = tuple(ToolCall(f"c{n}", "search_files", '{"query": "x"}') for n in numbers)
        return ModelReply(Message("assistant", "said", calls), Usage(), "end", "model")


def ended(model: Calling) -> tuple[Ended, list[str]]:
    """How it ended, and the functions that were carried out."""
    done: list[str] = []

    async def on_call(call: ToolCall) -> None:
        done.append(call.call_id)

    return asyncio.run(converse(model, Functions(None, None), on_call=on_call)), done


def test_of_many_calls_at_a_time_some_are_carried_out_and_each_is_answered() -> None:
    model = Calling(CONSULT_CALLS_MAX + 2, times=1)
    end, done = ended(model)
    assert (end.steps, end.calls, len(done)) == (2, CONSULT_CALLS_MAX, CONSULT_CALLS_MAX)
    results = model.given[1]
    assert [message.tool_call_id for message in results] == [
        f"c{number}" for number in range(CONSULT_CALLS_MAX + 2)
    ]
    refused = [message for message in results if message.text.startswith("Error: only")]
    assert refused == [*results[-2:]]


def test_a_model_that_never_ends_is_told_to_answer_and_then_left() -> None:
    model = Calling(1, times=10**6)
    end, done = ended(model)
    assert (end.steps, end.is_cut_short) == (CONSULT_STEPS_MAX, True)
    assert len(done) == end.calls == CONSULT_STEPS_MAX - 2
    (last,) = model.given[-1]
    assert "Answer now with what you have" in last.text

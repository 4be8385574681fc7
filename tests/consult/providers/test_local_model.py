"""A real model, small and slow: short prompts and a few tokens of an answer."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from tests.consult.providers.talking import request_of, send
from tests.drivers.local_model import CONTEXT_TOKENS, MODEL, LocalModel
from zibaldone.errors import SessionFull
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message, ModelRequest

FILE = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"


@pytest.fixture(scope="module")
def local_model() -> Iterator[LocalModel]:
    with LocalModel() as model:
        yield model


def assistant_of(model: LocalModel, api: str) -> Assistant:
    return Assistant("local", "openai", MODEL, base_url=model.url, api=api, seconds_max=100)  # type: ignore[arg-type]


def about(*messages: Message, output_tokens: int = 8, **options: object) -> ModelRequest:
    first = Message("user", f"{FILE * 3}\nWhat does it do?")
    system = "You are a reviewer of code. Answer briefly."
    return request_of(
        (first, *messages), system=system, tools=(), output_tokens=output_tokens, **options
    )


def test_the_second_turn_is_served_from_its_cache(local_model: LocalModel) -> None:
    assistant = assistant_of(local_model, "chat")
    pieces: list[str] = []
    (first,) = send(assistant, about(), on_text=pieces.append)
    assert "".join(pieces) == first.message.text != ""
    assert len(pieces) > 1
    assert (first.stop, first.usage.output_tokens, first.model) == ("length", 8, MODEL)
    (second,) = send(assistant, about(first.message, Message("user", "Sure?")))
    assert first.usage.cached_tokens < 30
    assert second.usage.cached_tokens >= first.usage.input_tokens - 1
    assert second.usage.input_tokens > first.usage.input_tokens > 80


def test_it_has_responses_and_they_share_the_cache(local_model: LocalModel) -> None:
    send(assistant_of(local_model, "chat"), about(output_tokens=1))
    pieces: list[str] = []
    (reply,) = send(assistant_of(local_model, "auto"), about(), on_text=pieces.append)
    assert "".join(pieces) == reply.message.text != ""
    assert reply.stop == "length"
    assert reply.usage.cached_tokens > 80


def test_structured_output(local_model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    }
    (reply,) = send(
        assistant_of(local_model, "chat"), about(output_tokens=16, output_schema=schema)
    )
    assert list(orjson.loads(reply.message.text)) == ["ok"]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_window_that_is_too_small(local_model: LocalModel, api: str) -> None:
    long = Message("user", "word " * (2 * CONTEXT_TOKENS))
    with pytest.raises(SessionFull, match="new session_id"):
        send(assistant_of(local_model, api), about(long))

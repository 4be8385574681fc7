"""The tests' own provider, held against the official clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.drivers.model_server import (
    Call,
    Cut,
    ModelServer,
    Reply,
    TooLong,
    overloaded,
    rate_limited,
)

TOOL: Any = {"name": "read_file", "description": "Read.", "parameters": {"type": "object"}}
LONG = "A long text to be cached. " * 400


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def openai_client(models: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=models.url, api_key="key", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(models: ModelServer) -> Iterator[anthropic.Anthropic]:
    url = models.anthropic_url
    with anthropic.Anthropic(base_url=url, api_key="key", max_retries=0) as client:
        yield client


def test_chat_completions(models: ModelServer, openai_client: openai.OpenAI) -> None:
    models.script(Reply("Some words for you.", (Call("read_file", '{"path": "a"}'),)))
    user: Any = {"role": "user", "content": LONG}
    with openai_client.chat.completions.stream(
        model="m",
        messages=[user],
        tools=[{"type": "function", "function": TOOL}],
        stream_options={"include_usage": True},
    ) as stream:
        completion = stream.get_final_completion()
    message = completion.choices[0].message
    assert message.content == "Some words for you."
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"path": "a"}'
    again = openai_client.chat.completions.create(model="m", messages=[user, user])
    assert again.choices[0].message.content == "Understood."
    assert completion.usage is not None
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert again.usage.prompt_tokens_details.cached_tokens == 0  # the tools are gone: a new prefix
    third = openai_client.chat.completions.create(model="m", messages=[user, user, user])
    assert third.usage is not None
    assert third.usage.prompt_tokens_details is not None
    cached = third.usage.prompt_tokens_details.cached_tokens or 0
    assert again.usage.prompt_tokens - 128 <= cached <= again.usage.prompt_tokens


def test_responses(models: ModelServer, openai_client: openai.OpenAI) -> None:
    models.script(Reply("Some words.", (Call("read_file", "{"),), thinking="Let me see."))
    with openai_client.responses.stream(model="m", input=LONG) as stream:
        response = stream.get_final_response()
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert response.output_text == "Some words."
    models.script(Reply("Words that do not end", stop="length"))
    again = openai_client.responses.create(model="m", input=LONG)
    assert again.status == "incomplete"
    assert again.usage is not None
    assert again.usage.input_tokens_details.cached_tokens > 2_000


def test_anthropic_messages(models: ModelServer, anthropic_client: anthropic.Anthropic) -> None:
    def ask(*texts: str) -> Any:
        blocks: list[Any] = [{"type": "text", "text": text} for text in texts]
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        with anthropic_client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": blocks}]
        ) as stream:
            return stream.get_final_message()

    models.script(Reply("Words.", (Call("read_file", '{"path": "a"}'),), thinking="Let me see."))
    first = ask(LONG)
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    assert first.content[2].input == {"path": "a"}
    assert first.usage.cache_creation_input_tokens > 2_000
    second = ask(LONG, "More.")
    assert second.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens
    assert 0 < second.usage.cache_creation_input_tokens < 100
    assert second.usage.input_tokens == 0


def test_faults(
    models: ModelServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    user: Any = {"role": "user", "content": "Hello"}
    models.script(rate_limited(3), TooLong(), Cut(), TooLong(), overloaded())
    with pytest.raises(openai.RateLimitError) as limited:
        openai_client.chat.completions.create(model="m", messages=[user])
    assert limited.value.response.headers["retry-after"] == "3"
    with pytest.raises(openai.BadRequestError) as too_long:
        openai_client.responses.create(model="m", input="Hello")
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.APIConnectionError):
        list(openai_client.chat.completions.create(model="m", messages=[user], stream=True))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        anthropic_client.messages.create(model="m", max_tokens=9, messages=[user])
    with pytest.raises(anthropic.APIStatusError) as busy:
        anthropic_client.messages.create(model="m", max_tokens=9, messages=[user])
    assert busy.value.status_code == 529
    models.has_responses = False
    with pytest.raises(openai.NotFoundError):
        openai_client.responses.create(model="m", input="Hello")
    models.api_key = "another"
    with pytest.raises(openai.AuthenticationError):
        openai_client.models.list()


def test_requests_are_checked_and_kept(
    models: ModelServer, openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    with pytest.raises(openai.BadRequestError, match="must follow"):
        openai_client.chat.completions.create(model="m", messages=[result])
    block: Any = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    with pytest.raises(anthropic.BadRequestError, match="maximum of 4"):
        anthropic_client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": [block] * 5}]
        )
    assert [request.path for request in models.requests] == [
        "/v1/chat/completions",
        "/v1/messages",
    ]
    assert models.requests[0].body.endswith(b'"content":"x"}]}')


def test_files_and_vector_stores(models: ModelServer, openai_client: openai.OpenAI) -> None:
    text = b"def answer() -> int:\r\n    return 42  # \xe2\x82\xac\n"
    file = openai_client.files.create(file=("src/answer.py", text), purpose="assistants")
    assert openai_client.files.content(file.id).read() == text
    other = openai_client.files.create(file=("b.txt", b"nothing"), purpose="assistants")
    store = openai_client.vector_stores.create(name="zibaldone-1", file_ids=[other.id])
    batch = openai_client.vector_stores.file_batches.create_and_poll(store.id, file_ids=[file.id])
    assert batch.file_counts.completed == 2
    assert {item.id for item in openai_client.vector_stores.files.list(store.id)} == {
        file.id,
        other.id,
    }
    hits = list(openai_client.vector_stores.search(store.id, query="where is answer"))
    assert [hit.filename for hit in hits] == ["src/answer.py"]
    for number in range(25):
        openai_client.vector_stores.create(name=f"more-{number}")
    names = [item.name for item in openai_client.vector_stores.list(limit=10)]
    assert len(names) == 26
    assert names[-1] == "zibaldone-1"
    openai_client.vector_stores.delete(store.id)
    openai_client.files.delete(file.id)
    with pytest.raises(openai.NotFoundError):
        openai_client.vector_stores.retrieve(store.id)
    assert list(models.hosted.files) == [other.id]
    models.fail("/v1/vector_stores", overloaded(), method="DELETE")
    with pytest.raises(openai.APIStatusError):
        openai_client.vector_stores.delete("vs_1")

"""What is sent to a provider, byte for byte, and what becomes of a good answer."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import orjson
import pytest

from tests.consult.providers.talking import (
    KEY,
    PATHS,
    TOOLS,
    Api,
    ask,
    assistant_of,
    request_of,
    send,
    send_one,
)
from tests.drivers.model_server import Call, ModelServer, Raw, Recorded, Reply, Status
from zibaldone.consult.providers.open import open_provider
from zibaldone.errors import NotConfigured, ProviderRefused
from zibaldone.model.consult import Message, ToolCall, Usage

KEY_HEADERS = {
    "chat": {"authorization": f"Bearer {KEY}"},
    "responses": {"authorization": f"Bearer {KEY}"},
    "anthropic": {"x-api-key": KEY},
}
_MARK = re.compile(rb',"cache_control":\{"type":"ephemeral"\}')


def key_headers(request: Recorded) -> dict[str, str]:
    names = ("authorization", "x-api-key")
    return {name: request.headers[name] for name in names if name in request.headers}


def test_an_answer_comes_in_pieces_and_whole(models: ModelServer, api: Api) -> None:
    text = "Grüße aus Zürich 🙂, and a little more."
    models.script(Reply(text))
    pieces: list[str] = []
    reply = send_one(assistant_of(models, api), ask(), on_text=pieces.append)
    assert "".join(pieces) == text
    assert len(pieces) == 3
    assert reply.message == Message("assistant", text)
    assert (reply.stop, reply.model) == ("end", "model")
    assert reply.usage.output_tokens == -(-len(text.encode()) // 4)
    assert models.to_models[-1].path == PATHS[api]
    assert key_headers(models.to_models[-1]) == KEY_HEADERS[api]


def test_tool_calls_are_read_and_answered(models: ModelServer, api: Api) -> None:
    calls = (Call("read_file", '{"path": "a.py"}'), Call("search_files", '{"query": "x'))
    models.script(Reply("Let me look.", calls, thinking="Which files?"), Reply("Done."))
    question = Message("user", "What is in a.py?")
    reply = send_one(assistant_of(models, api), request_of((question,)))
    assert reply.stop == "tools"
    assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [
        ("read_file", '{"path": "a.py"}'),
        ("search_files", '{"query": "x'),
    ]
    results = [
        Message("tool", f"result of {call.name}", tool_call_id=call.call_id)
        for call in reply.message.tool_calls
    ]
    stored = Message.from_json(orjson.loads(orjson.dumps(reply.message.to_json())))
    second = send_one(assistant_of(models, api), request_of((question, stored, *results)))
    assert (second.message.text, second.stop) == ("Done.", "end")  # the server checks the order
    sent = models.to_models[-1].body
    assert b"malformed_arguments" in sent
    if api != "chat":
        sealed = b'"encrypted_content":"sealed:Which files?"'
        assert (sealed if api == "responses" else b'"thinking":"Which files?"') in sent


def test_thoughts_of_another_model_are_not_sent(models: ModelServer, api: Api) -> None:
    models.script(Reply("Yes.", thinking="Is it?"))
    question = Message("user", "Is it so?")
    (reply,) = send(assistant_of(models, api), request_of((question,)))
    later = (question, reply.message, Message("user", "Why?"))
    send(assistant_of(models, api, model="newer"), request_of(later))
    assert b"Is it?" not in models.to_models[-1].body
    assert b"Yes." in models.to_models[-1].body


def test_the_bytes_of_a_turn_are_a_prefix_of_the_next(models: ModelServer, api: Api) -> None:
    """For ten turns with tool calls. Marks of Anthropic's cache move on; they are no content."""
    assistant = assistant_of(models, api)
    messages: tuple[Message, ...] = (Message("user", 'File "a"\n' + "text ünï 🙂 " * 900),)
    bodies: list[bytes] = []
    previous = Usage()
    for turn in range(10):
        if turn % 2:
            models.script(Reply(f"Answer {turn}", thinking="Hm." if turn % 3 else ""))
        else:
            models.script(Reply(calls=(Call("read_file", "{"), Call("read_file", '{"path":"b"}'))))
        breakpoints = (0, len(messages) - 1)
        request = request_of(messages, breakpoints=breakpoints, cache_key="session-1")
        first, again = send(assistant, request, request)
        assert models.to_models[-1].body == models.to_models[-2].body
        bodies.append(models.to_models[-1].body)
        assert first.usage.input_tokens > previous.input_tokens
        if turn:
            slack = 0 if api == "anthropic" else 256
            assert first.usage.cached_tokens >= previous.input_tokens - slack
        previous = again.usage
        messages += (first.message,)
        if first.message.tool_calls:
            messages += tuple(
                Message("tool", "b\n", tool_call_id=call.call_id)
                for call in first.message.tool_calls
            )
        else:
            messages += (Message("user", f"Question {turn}"),)
        messages = tuple(Message.from_json(message.to_json()) for message in messages)
    if api == "anthropic":
        assert max(body.count(b"cache_control") for body in bodies) <= 4
        bodies = [_MARK.sub(b"", body) for body in bodies]
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}"))
        assert len(later) > len(earlier)


def test_where_the_cache_may_be_cut(models: ModelServer, api: Api) -> None:
    messages = tuple(
        Message("user" if index % 2 == 0 else "assistant", f"text {index}") for index in range(7)
    )
    request = request_of(messages, breakpoints=(0, 4, 6), cache_key="session-1")
    send(assistant_of(models, api), request)
    body = models.to_models[-1].json
    if api == "anthropic":
        marked = [i for i, m in enumerate(body["messages"]) if "cache_control" in m["content"][-1]]
        assert marked == [0, 4, 6]
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert "prompt_cache_key" not in body
        send(assistant_of(models, api, cache_seconds=3_600), request)
        ttl = models.to_models[-1].json["system"][-1]["cache_control"]["ttl"]
        assert ttl == "1h"
    else:
        assert body["prompt_cache_key"] == "session-1"


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_schema_and_effort(models: ModelServer, api: Api) -> None:
    models.script(Reply('{"name": "x"}'))
    request = ask(output_schema=SCHEMA, reasoning_effort="low")
    reply = send_one(assistant_of(models, api), request)
    assert reply.message.text == '{"name": "x"}'
    body = models.to_models[-1].json
    match api:
        case "chat":
            form = body["response_format"]["json_schema"]
            assert (form["strict"], form["schema"]) == (True, SCHEMA)
            assert body["reasoning_effort"] == "low"
        case "responses":
            form = body["text"]["format"]
            assert (form["type"], form["strict"], form["schema"]) == ("json_schema", True, SCHEMA)
            assert body["reasoning"] == {"effort": "low"}
            assert body["store"] is False
        case "anthropic":
            form = body["output_config"]["format"]
            assert form["type"] == "json_schema"
            assert form["schema"]["required"] == ["name"]
            assert body["output_config"]["effort"] == "low"
    loose = {"type": "object", "properties": {"name": {"type": "string"}}}
    send(assistant_of(models, api), ask(output_schema=loose))
    sent = models.to_models[-1].body
    assert (b'"strict":true' in sent) is False


@pytest.mark.parametrize("stop", ["length", "refused"])
def test_an_answer_that_is_cut_off_has_no_calls(models: ModelServer, api: Api, stop: Any) -> None:
    models.script(Reply("Half of", (Call("read_file", '{"pa'),), stop=stop, thinking="Hm."))
    reply = send_one(assistant_of(models, api), ask())
    assert reply.stop == stop
    assert reply.message == Message("assistant", "Half of")


def test_no_key_and_nothing_of_the_environment(
    models: ModelServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "secret-1")
        monkeypatch.setenv(f"{name}_AUTH_TOKEN", "secret-2")
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9/")
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "authorization: secret-3\nx-more: secret-4")
    monkeypatch.setenv("OPENAI_ORG_ID", "secret-5")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "secret-6")
    send(assistant_of(models, api, api_key_env=""), ask())
    send(assistant_of(models, api), ask())
    without, with_key = models.to_models[-2:]
    assert key_headers(without) == {}
    assert key_headers(with_key) == KEY_HEADERS[api]
    assert "secret" not in str((without.headers, with_key.headers))


def test_a_key_that_is_not_set(models: ModelServer, api: Api) -> None:
    with pytest.raises(NotConfigured, match="TESTS_KEY is not set"):
        open_provider(assistant_of(models, api), {"TESTS_KEY": " "})


def test_responses_are_looked_for_once() -> None:
    with ModelServer(has_responses=True) as models:
        assistant = assistant_of(models, "auto")
        send(assistant, ask(), ask())
        send(assistant, ask())
        assert [request.path for request in models.requests] == ["/v1/responses"] * 4
        assert [request.body for request in models.requests].count(b"{}") == 1
        models.has_responses = False  # another server has taken its place
        assert send_one(assistant, ask()).message.text == "Understood."
        assert models.requests[-1].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    "answer",
    [None, Status(405, "Method not allowed"), Raw(b'{"error": "Unexpected endpoint"}', 200)],
)
def test_a_server_with_chat_completions_only(answer: Any) -> None:
    with ModelServer(has_responses=answer is not None) as models:
        if answer is not None:
            models.fail("/v1/responses", answer)
        assistant = assistant_of(models, "auto")
        send(assistant, ask(), ask())
        send(assistant, ask())
        paths = [request.path for request in models.requests]
        assert paths == ["/v1/responses", *["/v1/chat/completions"] * 3]


def test_looking_for_responses_says_that_the_key_is_wrong() -> None:
    with ModelServer(api_key="another") as models:
        assistant = assistant_of(models, "auto")
        with pytest.raises(ProviderRefused, match="TESTS_KEY"):
            send(assistant, ask())
        models.api_key = KEY
        assert send_one(assistant, ask()).message.text == "Understood."


def test_fields_that_a_server_does_not_take_are_left_out(models: ModelServer) -> None:
    """Found out by its refusal, and remembered."""
    for api, word, field in (
        ("chat", "Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        ("chat", "Extra inputs are not permitted: stream_options", "stream_options"),
        ("chat", "'max_tokens' is not supported, use 'max_completion_tokens'.", "max_tokens"),
        ("responses", "Encrypted content is not supported with this model.", "include"),
    ):
        assistant = assistant_of(models, api, model=f"without {field}")  # type: ignore[arg-type]
        models.script(Status(400, word))
        send(assistant, ask(cache_key="a"))
        send(assistant, ask(cache_key="b"))
        bodies = [request.json for request in models.to_models[-3:]]
        assert [field in body for body in bodies] == [True, False, False]
        assert ("max_completion_tokens" in bodies[-1]) == (field == "max_tokens")


@pytest.mark.parametrize("status", [400, 500])
def test_roles_that_must_alternate(models: ModelServer, status: int) -> None:
    """Files and question are two messages of the user; some models' templates take only one."""

    def template(request: Recorded) -> Reply | Status:
        roles = [message["role"] for message in request.json["messages"]]
        is_taken = all(one != other for one, other in itertools.pairwise(roles))
        return Reply("Yes.") if is_taken else Status(status, "Conversation roles must alternate")

    models.default = template
    assistant = assistant_of(models, "chat", model=f"alternating {status}")
    base = Message("user", "The files.", is_base=True)
    messages: tuple[Message, ...] = (base, Message("user", "The question."))
    (reply,) = send(assistant, request_of(messages))
    first = models.to_models[-1].body
    assert models.to_models[-1].json["messages"][-1]["content"] == "The files.\n\nThe question."
    messages += (reply.message, Message("user", "A change."), Message("user", "And now?"))
    count = len(models.to_models)
    send(assistant, request_of(messages))
    assert len(models.to_models) == count + 1
    assert models.to_models[-1].body.startswith(first.removesuffix(b"]}"))


def test_half_characters(models: ModelServer, api: Api) -> None:
    """A file's name need not be UTF-8, and a model may write half a character."""
    reply = send_one(assistant_of(models, api), ask("name: \udce4.py"))
    assert reply.message.text == "Understood."
    sent = orjson.loads(models.to_models[-1].body)
    assert "name: \ufffd.py" in str(sent)


def test_several_answers_at_once(models: ModelServer, api: Api) -> None:
    models.default = lambda request: Reply(f"Answer to {request.body.count(b'x')}")

    async def talk() -> list[str]:
        provider = open_provider(assistant_of(models, api), {"TESTS_KEY": KEY})
        replies = await asyncio.gather(
            *(provider.send(ask("x" * count, system="", tools=())) for count in range(1, 6))
        )
        await provider.close()
        return [reply.message.text for reply in replies]

    texts = asyncio.run(talk())
    assert len(set(texts)) == 5
    assert sorted(texts) == texts


def test_what_the_caller_raises_is_not_the_providers(models: ModelServer, api: Api) -> None:
    class Stopped(Exception):
        pass

    def stop(piece: str) -> None:
        raise Stopped(piece)

    with pytest.raises(Stopped):
        send(assistant_of(models, api), ask(), on_text=stop)
    assert len(models.to_models) == 1


def test_calls_that_no_provider_would_take_back(models: ModelServer, api: Api) -> None:
    calls = (
        Call("read file; now!", "{}", "an id with spaces"),
        Call("x" * 500, "[1]", "same"),
        Call("", "", "same"),
    )
    models.script(Reply(calls=calls))
    question = Message("user", "Call!")
    (reply,) = send(assistant_of(models, api), request_of((question,)))
    ids = [call.call_id for call in reply.message.tool_calls]
    assert len(set(ids)) == 3
    for call in reply.message.tool_calls:
        assert isinstance(call, ToolCall)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.call_id)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.name)
    results = [Message("tool", "", tool_call_id=call_id) for call_id in ids]
    send(assistant_of(models, api), request_of((question, reply.message, *results)))
    assert len(TOOLS) == 2

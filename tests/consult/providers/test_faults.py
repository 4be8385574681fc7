"""Providers that refuse, are busy, break off, never end, or answer with anything at all."""

from __future__ import annotations

import asyncio
import gzip
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.consult.providers.talking import (
    APIS,
    KEY,
    Api,
    ask,
    assistant_of,
    send,
    send_one,
)
from tests.drivers.model_server import (
    Cut,
    Endless,
    InStream,
    ModelServer,
    Raw,
    Reply,
    Silent,
    Status,
    TooLong,
    overloaded,
    rate_limited,
    server_error,
    unauthorized,
)
from zibaldone.consult.providers.anthropic_messages import MessageReading
from zibaldone.consult.providers.open import open_provider
from zibaldone.consult.providers.openai_chat import ChatReading
from zibaldone.consult.providers.openai_responses import Failed, ResponseReading
from zibaldone.consult.providers.port import Bounds
from zibaldone.consult.providers.values import Malformed
from zibaldone.errors import ProviderBusy, ProviderRefused, ProviderUnavailable, SessionFull


def test_a_busy_provider_is_asked_again(models: ModelServer, api: Api) -> None:
    models.script(rate_limited(0), server_error(), overloaded(), Reply("At last."))
    assert send_one(assistant_of(models, api), ask()).message.text == "At last."
    bodies = {request.body for request in models.to_models}
    assert (len(models.to_models), len(bodies)) == (4, 1)


@pytest.mark.parametrize(
    ("step", "error"), [(rate_limited(0), ProviderBusy), (server_error(), ProviderUnavailable)]
)
def test_not_for_ever(models: ModelServer, api: Api, step: Any, error: type[Exception]) -> None:
    models.default = lambda request: step
    with pytest.raises(error) as failed:
        send(assistant_of(models, api), ask())
    assert failed.value.details["retryable"] is True  # type: ignore[attr-defined]
    assert len(models.to_models) == 4


def test_a_pause_that_is_too_long_is_left_to_the_caller(models: ModelServer, api: Api) -> None:
    models.script(rate_limited(3_000))
    with pytest.raises(ProviderBusy) as busy:
        send(assistant_of(models, api), ask())
    assert busy.value.details["retry_after_seconds"] == 3_000
    assert len(models.to_models) == 1


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (unauthorized(), "environment variable TESTS_KEY"),
        (Status(401, f"Incorrect API key: {KEY}"), "environment variable TESTS_KEY"),
        (Status(403, "No access"), "assistants.reviewer.model"),
        (Status(404, "No such model"), "assistants.reviewer.base_url"),
        (Status(400, "max_tokens: 9 > 8, the maximum"), "max_tokens: 9 > 8"),
        (Status(402, "Payment required"), "no credit left"),
        (Status(429, "You are out of credits", code="insufficient_quota"), "no credit left"),
    ],
)
def test_a_refusal_says_what_to_check(
    models: ModelServer, api: Api, step: Status, says: str
) -> None:
    if api == "anthropic" and step.code == "insufficient_quota":
        step = Status(429, step.message, "billing_error")
    models.script(step)
    with pytest.raises(ProviderRefused) as refused:
        send(assistant_of(models, api), ask())
    assert says in refused.value.message
    assert KEY not in str(refused.value.as_dict())
    assert refused.value.details["provider_status"] == step.status
    assert len(models.to_models) == 1


def test_redirects_are_not_followed(models: ModelServer, api: Api) -> None:
    with ModelServer() as other:
        models.script(Raw(b"", 307, {"location": f"{other.anthropic_url}/v1/messages"}))
        with pytest.raises(ProviderRefused, match="redirects"):
            send(assistant_of(models, api), ask())
        assert other.requests == []


@pytest.mark.parametrize(
    "step",
    [
        TooLong(),
        TooLong(in_stream=True),
        Status(413, "Request exceeds the maximum size", "request_too_large"),
        Status(400, "the request exceeds the available context size", "exceed_context_size_error"),
    ],
)
def test_a_full_window(models: ModelServer, api: Api, step: Any) -> None:
    models.script(step)
    with pytest.raises(SessionFull, match="new session_id"):
        send(assistant_of(models, api), ask())
    assert len(models.to_models) == 1


def test_an_answer_that_has_begun_is_not_asked_for_again(models: ModelServer, api: Api) -> None:
    for step in (Cut(), Cut(1), InStream()):
        models.script(step)
        with pytest.raises(ProviderUnavailable):
            send(assistant_of(models, api), ask())
    assert len(models.to_models) == 3


def test_nobody_is_there(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with ModelServer() as models:
        url = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(ProviderUnavailable, match="cannot be reached"):
            send(assistant_of(models, api, base_url=url), ask())


@pytest.mark.parametrize("after", [0, 2])
def test_silence(models: ModelServer, api: Api, after: int) -> None:
    models.script(Silent(after))
    with pytest.raises(ProviderUnavailable):
        send(assistant_of(models, api), ask(), bounds=Bounds(idle_seconds_max=0.3))
    assert len(models.to_models) == 1
    assert models.abandoned.wait(10)


def test_a_turn_takes_no_longer_than_it_may(models: ModelServer, api: Api) -> None:
    models.script(Silent(2))
    with pytest.raises(ProviderUnavailable, match="longer than 1 s"):
        send(assistant_of(models, api, seconds_max=1), ask())
    assert models.abandoned.wait(10)


@pytest.mark.parametrize("data", [b"", b"x" * 65_536, b"\n" * 9_000, b": a comment\n\n" * 999])
def test_a_stream_without_end(models: ModelServer, api: Api, data: bytes) -> None:
    models.script(Endless(data))
    bounds = Bounds(answer_bytes_max=300_000, event_bytes_max=200_000)
    with pytest.raises(ProviderUnavailable, match="too long"):
        send(assistant_of(models, api), ask(), bounds=bounds)
    assert models.abandoned.wait(10)


def test_the_bound_of_an_answer_follows_what_was_asked_for(models: ModelServer) -> None:
    long = "x" * 1_500_000
    models.script(Reply(long, piece_chars=60_000), Reply(long, piece_chars=60_000))
    with pytest.raises(ProviderUnavailable, match="too long"):
        send(assistant_of(models, "chat"), ask(output_tokens=16))
    assert send_one(assistant_of(models, "chat"), ask(output_tokens=8_000)).message.text == long


def test_one_event_is_bounded_too(models: ModelServer, api: Api) -> None:
    models.script(*[Reply("x" * 400_000, piece_chars=400_000)] * 2)
    with pytest.raises(ProviderUnavailable, match="too long"):
        send(assistant_of(models, api), ask(), bounds=Bounds(event_bytes_max=200_000))
    assert (
        len(send_one(assistant_of(models, api), ask(output_tokens=8_000)).message.text) == 400_000
    )


def test_a_cancelled_call_closes_its_connection(models: ModelServer, api: Api) -> None:
    async def talk() -> None:
        provider = open_provider(assistant_of(models, api), {"TESTS_KEY": KEY})
        models.script(Endless(b": still here\n\n"))
        asked = asyncio.create_task(provider.send(ask()))
        await asyncio.to_thread(models.wait_asked)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await asyncio.to_thread(models.abandoned.wait, 10)
        models.script(Reply("Still of use."))
        assert (await provider.send(ask())).message.text == "Still of use."
        await provider.close()

    asyncio.run(talk())


HOSTILE = {
    "empty": b"",
    "no events": b'{"id": "x", "choices": []}',
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "not JSON": b"event: message_start\ndata: {nope\n\n",
    "not UTF-8": b"event: message_start\ndata: \xff\xfe\n\n",
    "cut UTF-8": b'event: message_start\ndata: {"a": "\xc3\n\n',
    "deep": b"event: message_start\ndata: " + b"[" * 100_000 + b"\n\n",
    "deep objects": b"event: message_start\ndata: " + b'{"a":' * 100_000 + b"\n\n",
    "number": b"event: message_start\ndata: 7\n\n",
    "long number": b"event: message_start\ndata: " + b"9" * 10_000 + b"\n\n",
    "null": b"event: message_start\ndata: null\n\ndata: null\n\n",
    "choices are text": b'data: {"choices": "abc", "type": 5}\n\nevent: x\ndata: {"type": []}\n\n',
    "delta is a list": b'data: {"choices": [{"delta": [1]}]}\n\n',
    "message is a number": b'event: message_start\ndata: {"type":"message_start","message":3}\n\n',
    "done at once": b"data: [DONE]\n\n",
    "completed with nothing": b'data: {"type": "response.completed", "response": []}\n\n',
    "error is text": b'data: {"error": "no"}\n\nevent: error\ndata: no\n\n',
    "error is a list": b'data: {"error": [1]}\n\nevent: error\ndata: [1]\n\n',
    "failed with nothing": b'event: e\ndata: {"type": "response.failed", "response": null}\n\n',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_anything_at_all(models: ModelServer, body: bytes) -> None:
    for api in APIS:
        models.script(Raw(body))
        with pytest.raises(ProviderUnavailable) as failed:
            send(assistant_of(models, api), ask())
        assert len(failed.value.message) < 600


def test_errors_that_are_anything(models: ModelServer) -> None:
    json = {"content-type": "application/json"}
    for api in APIS:
        for body in (b"", b"\xff", b"[" * 100_000, b'{"error": 7}', b'{"error": {"code": []}}'):
            models.script(Raw(body, 400, json))
            with pytest.raises(ProviderRefused):
                send(assistant_of(models, api), ask())
        models.script(Raw(b"x" * 1_000_000, 400, json))
        with pytest.raises(ProviderUnavailable, match="too long"):
            send(assistant_of(models, api), ask())
        models.script(Status(400, "a\n\x1b[31m\0" + "reason " * 9_000))
        with pytest.raises(ProviderRefused) as refused:
            send(assistant_of(models, api), ask())
        assert len(refused.value.message) < 900
        assert refused.value.message.isprintable()


@pytest.mark.parametrize("header", ["tomorrow", "-5", "nan", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_any_retry_after(models: ModelServer, header: str) -> None:
    models.script(rate_limited(header), Reply("Yes."))
    assert send_one(assistant_of(models, "chat"), ask()).message.text == "Yes."


def test_compressed_answers_are_not_unpacked(models: ModelServer, api: Api) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    models.script(Raw(gzip.compress(b"\0" * 50_000_000), 200, headers))
    with pytest.raises(ProviderUnavailable, match="compressed"):
        send(assistant_of(models, api), ask())
    assert models.to_models[-1].headers["accept-encoding"] == "identity"


def test_text_that_cannot_be_stored(models: ModelServer) -> None:
    """NUL, halves of a character, and a character whose halves come one after the other."""
    events = (
        rb'data: {"choices":[{"delta":{"content":"a\u0000b \ud83d"}}]}',
        rb'data: {"choices":[{"delta":{"content":"\ude42 \udc00 \ud800"}}]}',
        rb'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":"9"}}',
    )
    models.script(Raw(b"\n\n".join((*events, b"data: [DONE]\n\n"))))
    pieces: list[str] = []
    reply = send_one(assistant_of(models, "chat"), ask(), on_text=pieces.append)
    assert reply.message.text == "a\ufffdb 🙂 \ufffd \ufffd"
    assert "".join(pieces).encode() == b"a\xef\xbf\xbdb \xf0\x9f\x99\x82 \xef\xbf\xbd "
    assert reply.usage.input_tokens == 0


NAMES = """
    type choices delta content tool_calls index id function name arguments usage response output
    item output_index error message content_block text thinking signature finish_reason stop_reason
    partial_json encrypted_content summary
"""
KINDS = """
    message_start content_block_start content_block_delta message_delta message_stop text thinking
    response.output_text.delta response.output_item.done response.completed response.failed error
    response.incomplete tool_use reasoning message function_call
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=4)
    ),
    max_leaves=8,
)
TYPES = st.sampled_from(KINDS.split())
EVENTS = VALUES | st.builds(
    lambda kind, rest: {**(rest if isinstance(rest, dict) else {}), "type": kind}, TYPES, VALUES
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, max_size=6))
def test_any_events_are_read_or_refused(events: list[Any]) -> None:
    for reading in (ChatReading("m"), ResponseReading("m", 9), MessageReading("m")):
        try:
            for event in events:
                reading.add(event)
            reply = reading.finish()
        except (Malformed, Failed):
            continue
        assert reply.message.text.encode() is not None

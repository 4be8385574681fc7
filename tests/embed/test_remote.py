"""A remote model: every form of a good answer is read, every bad one is told, none breaks us."""

from __future__ import annotations

import email.utils
import gzip
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.drivers.embedding_server import (
    DIMENSIONS,
    MODEL,
    Answer,
    Asked,
    EmbeddingServer,
    entries,
    well,
)
from zibaldone.embed import remote
from zibaldone.embed.remote import Remote
from zibaldone.errors import EmbedderUnavailable, EmbeddingFailed
from zibaldone.limits import EMBED_BATCH_MAX, EMBED_TRIES_MAX

SECRET = "sk-very-secret"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def model(server: EmbeddingServer) -> Iterator[Remote]:
    made = Remote(server.url, "m", dimensions=DIMENSIONS, api_key=SECRET, seconds_max=10)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited before it asked again; nobody waits here."""
    waited: list[float] = []
    clock = SimpleNamespace(sleep=waited.append, monotonic=time.monotonic)
    monkeypatch.setattr(remote, "time", clock)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return waited


def assert_right(model: Remote, texts: list[str]) -> None:
    vectors = model.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(MODEL.embed(texts), abs=1e-5)


class TestGoodAnswers:
    def test_lists_of_numbers_are_brought_to_unit_length(
        self, server: EmbeddingServer, model: Remote
    ) -> None:
        assert_right(model, ["zebra", "lion"])
        (asked,) = server.asked
        assert (asked.path, asked.model, asked.texts) == ("/v1/embeddings", "m", ["zebra", "lion"])
        assert asked.headers["authorization"] == f"Bearer {SECRET}"
        assert asked.headers["content-type"] == "application/json"

    def test_base64_is_read_too(self, server: EmbeddingServer, model: Remote) -> None:
        server.behaviour = lambda asked: well(entries(asked.texts, as_base64=True))
        assert_right(model, ["zebra", "ü 日本", ""])

    def test_vectors_out_of_order_are_put_into_order(
        self, server: EmbeddingServer, model: Remote
    ) -> None:
        server.behaviour = lambda asked: well(entries(asked.texts)[::-1])
        assert_right(model, ["zebra", "lion", "okapi"])

    @pytest.mark.parametrize("scale", [1, 1e-300, 1e300])
    def test_whole_huge_and_tiny_numbers_are_numbers(
        self, server: EmbeddingServer, model: Remote, scale: float
    ) -> None:
        row = [scale * (n + 1) for n in range(DIMENSIONS)]
        server.behaviour = lambda asked: well([{"index": 0, "embedding": row}])
        unit = np.arange(1, DIMENSIONS + 1) / np.linalg.norm(np.arange(1, DIMENSIONS + 1))
        assert model.embed(["x"])[0] == pytest.approx(unit, abs=1e-5)

    def test_a_vector_of_zeros_stays_one(self, server: EmbeddingServer, model: Remote) -> None:
        server.behaviour = lambda asked: well([{"index": 0, "embedding": [0] * DIMENSIONS}])
        assert not model.embed(["x"]).any()

    def test_many_texts_go_in_batches_that_every_server_takes(
        self, server: EmbeddingServer, model: Remote
    ) -> None:
        texts = [f"text {number}" for number in range(2 * EMBED_BATCH_MAX + 3)]
        assert_right(model, texts)
        assert [len(batch) for batch in server.texts] == [EMBED_BATCH_MAX, EMBED_BATCH_MAX, 3]

    def test_nothing_is_asked_for_nothing(self, server: EmbeddingServer, model: Remote) -> None:
        assert model.embed([]).shape == (0, DIMENSIONS)
        assert server.asked == []

    def test_a_slash_at_the_end_of_the_address_does_not_matter(
        self, server: EmbeddingServer
    ) -> None:
        model = Remote(server.url + "/", "m", dimensions=DIMENSIONS)
        assert_right(model, ["x"])
        model.close()
        assert server.asked[0].path == "/v1/embeddings"
        assert "authorization" not in server.asked[0].headers


class TestSplitting:
    @pytest.mark.parametrize("status", [413, 422])
    def test_a_batch_that_is_too_large_is_halved_until_it_fits(
        self, server: EmbeddingServer, model: Remote, status: int
    ) -> None:
        def small_only(asked: Asked) -> Answer | None:
            return Answer(status) if len(asked.texts) > 3 else None

        server.behaviour = small_only
        assert_right(model, [f"text {number}" for number in range(10)])
        assert max(len(batch) for batch in server.texts if len(batch) <= 3) <= 3

    def test_a_text_that_is_too_large_by_itself_has_failed(
        self, server: EmbeddingServer, model: Remote
    ) -> None:
        server.behaviour = lambda asked: Answer(413)
        with pytest.raises(EmbeddingFailed, match="answered 413") as failed:
            model.embed(["x"])
        assert not isinstance(failed.value, EmbedderUnavailable)
        assert len(server.asked) == 1


class TestBusyServers:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
    def test_it_is_asked_again_after_a_while(
        self, server: EmbeddingServer, model: Remote, waits: list[float], status: int
    ) -> None:
        answers = iter([Answer(status), Answer(status), None])
        server.behaviour = lambda asked: next(answers)
        assert_right(model, ["zebra"])
        assert waits == [0.25, 0.5]

    @pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
    def test_after_some_tries_it_cannot_be_had(
        self, server: EmbeddingServer, model: Remote, status: int
    ) -> None:
        server.behaviour = lambda asked: Answer(status)
        with pytest.raises(EmbedderUnavailable, match=f"answered {status}"):
            model.embed(["zebra"])
        assert len(server.asked) == EMBED_TRIES_MAX

    def test_a_server_that_stumbles_may_stumble_over_the_text(
        self, server: EmbeddingServer, model: Remote
    ) -> None:
        """So the caller tries the others alone."""
        server.behaviour = lambda asked: Answer(500)
        with pytest.raises(EmbeddingFailed) as failed:
            model.embed(["zebra"])
        assert not isinstance(failed.value, EmbedderUnavailable)

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_a_wrong_key_address_or_name_is_wrong_for_every_text(
        self, server: EmbeddingServer, model: Remote, status: int
    ) -> None:
        server.behaviour = lambda asked: Answer(status, b"no such key: " + SECRET.encode())
        with pytest.raises(EmbedderUnavailable, match=f"answered {status}") as failed:
            model.embed(["zebra"])
        assert len(server.asked) == 1
        assert SECRET not in str(failed.value)

    @pytest.mark.parametrize(
        ("header", "waited"),
        [
            *(("0", 0.0), ("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", 0.25), ("nan", 0.0)),
            ("Fri, 31 Dec 9999 23:59:59 -2359", 0.25),
        ],
    )
    def test_retry_after_is_honoured(
        self,
        server: EmbeddingServer,
        model: Remote,
        waits: list[float],
        header: str,
        waited: float,
    ) -> None:
        answers = iter([Answer(429, headers={"retry-after": header}), None])
        server.behaviour = lambda asked: next(answers)
        assert_right(model, ["zebra"])
        assert waits == [waited]

    def test_retry_after_may_be_a_date(
        self, server: EmbeddingServer, model: Remote, waits: list[float]
    ) -> None:
        date = email.utils.formatdate(time.time() + 8, usegmt=True)
        answers = iter([Answer(503, headers={"retry-after": date}), None])
        server.behaviour = lambda asked: next(answers)
        assert_right(model, ["zebra"])
        (waited,) = waits
        assert 0 < waited <= 8

    @pytest.mark.parametrize(("header", "told"), [("60", 60.0), ("inf", 3600.0), ("1e9", 3600.0)])
    def test_one_that_wants_to_be_left_alone_for_long_is_not_waited_for(
        self, server: EmbeddingServer, model: Remote, waits: list[float], header: str, told: float
    ) -> None:
        server.behaviour = lambda asked: Answer(429, headers={"retry-after": header})
        with pytest.raises(EmbedderUnavailable) as failed:
            model.embed(["zebra"])
        assert waits == []
        assert len(server.asked) == 1
        assert failed.value.details == {"retry_after_seconds": told}

    def test_a_server_that_does_not_answer_in_time(self, server: EmbeddingServer) -> None:
        server.hold.clear()
        impatient = Remote(server.url, "m", dimensions=DIMENSIONS, seconds_max=0.1)
        with pytest.raises(EmbedderUnavailable, match="takes too long"):
            impatient.embed(["zebra"])
        impatient.close()
        assert len(server.asked) == 1, "whoever asked waited long enough"

    def test_a_server_that_is_not_there(self) -> None:
        nobody = Remote("http://127.0.0.1:9/v1", "m", dimensions=DIMENSIONS, api_key=SECRET)
        with pytest.raises(EmbedderUnavailable, match="ConnectError") as failed:
            nobody.embed(["zebra"])
        nobody.close()
        assert SECRET not in str(failed.value)


def one(embedding: Any) -> list[Any]:
    return [{"index": 0, "embedding": embedding}]


RIGHT = [1.0] * DIMENSIONS

ODD: dict[str, Answer] = {
    "not JSON": Answer(200, b"<html>"),
    "nothing": Answer(200, b""),
    "JSON of another kind": Answer(200, b"[]"),
    "no data": Answer(200, b"{}"),
    "null": Answer(200, b'{"data": null}'),
    "no vectors": well([]),
    "entries that are none": well(["x"]),
    "no index": well([{"embedding": RIGHT}]),
    "an index that is a text": well([{"index": "0", "embedding": RIGHT}]),
    "another index": well([{"index": 1, "embedding": RIGHT}]),
    "one too many": well([{"index": n, "embedding": RIGHT} for n in range(2)]),
    "one twice": well([{"index": 0, "embedding": RIGHT}] * 2),
    "no embedding": well([{"index": 0}]),
    "an embedding that is null": well(one(None)),
    "an embedding that is a number": well(one(1)),
    "texts": well(one(["1"] * DIMENSIONS)),
    "lists in lists": well(one([RIGHT])),
    "truths": well(one([True] * DIMENSIONS)),
    "nulls": well(one([None] * DIMENSIONS)),
    "too short": well(one(RIGHT[1:])),
    "too long": well(one([*RIGHT, 1.0])),
    "empty": well(one([])),
    "no base64": well(one("?!")),
    "base64 of no floats": well(one("AAAA")),
    "base64 of too few": well(one("AACAPw==")),
    "an integer beyond measure": Answer(
        200, json.dumps({"data": one([10**400, *RIGHT[1:]])}).encode()
    ),
    "infinity": Answer(200, json.dumps({"data": one([math.inf, *RIGHT[1:]])}).encode()),
    "no number": Answer(200, json.dumps({"data": one([math.nan, *RIGHT[1:]])}).encode()),
    "infinity in base64": well(
        entries(["x"], as_base64=True, scale=math.inf)
    ),
    "very deep": Answer(200, b'{"data":' * 5_000),
    "no such status": Answer(418),
    "elsewhere": Answer(302, headers={"location": "http://127.0.0.1:9/"}),
}  # fmt: skip


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_odd_answer_is_told_and_nothing_else_happens(
    server: EmbeddingServer, model: Remote, answer: Answer
) -> None:
    server.behaviour = lambda asked: answer
    with pytest.raises(EmbeddingFailed) as failed:
        model.embed(["zebra"])
    assert not isinstance(failed.value, EmbedderUnavailable)
    assert failed.value.message.startswith("m: ")
    assert SECRET not in failed.value.message
    assert len(server.asked) == 1
    server.behaviour = lambda asked: None
    assert_right(model, ["zebra"])


def test_a_wrong_dimension_says_what_to_check(server: EmbeddingServer, model: Remote) -> None:
    server.behaviour = lambda asked: well(one([1.0, 0.0]))
    with pytest.raises(EmbeddingFailed, match=r"shape \(2,\), not \(8,\). Set embedding_dim"):
        model.embed(["zebra"])


def test_an_answer_without_end_is_not_read_to_its_end(
    server: EmbeddingServer, model: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "EMBED_RESPONSE_BYTES_MAX", 1_000)
    server.behaviour = lambda asked: Answer(200, b"x" * 1_001)
    with pytest.raises(EmbeddingFailed, match="too large"):
        model.embed(["zebra"])
    server.behaviour = lambda asked: None
    assert_right(model, ["zebra"])


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_trickles_in_is_not_waited_for(server: EmbeddingServer, part: str) -> None:
    long = {"x-long": "x" * 2_000} if part == "headers" else {}
    server.behaviour = lambda asked: Answer(
        200, b" " * 2_000, long, pause_seconds=0.02, is_head_slow=part == "headers"
    )
    impatient = Remote(server.url, "m", dimensions=DIMENSIONS, seconds_max=0.1)
    began_s = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="takes too long"):
        impatient.embed(["zebra"])
    assert time.monotonic() - began_s < 20, "the headers alone take twice as long"
    impatient.close()


def test_a_request_ends_when_the_model_is_closed(server: EmbeddingServer, model: Remote) -> None:
    server.hold.clear()
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(model.embed, ["zebra"])
        while not server.asked:
            assert not asking.done()
        model.close()
        with pytest.raises(EmbedderUnavailable):
            asking.result()


def test_a_packed_answer_is_not_unpacked(server: EmbeddingServer, model: Remote) -> None:
    packed = gzip.compress(well(entries(["zebra"])).body)
    server.behaviour = lambda asked: Answer(200, packed, {"content-encoding": "gzip"})
    with pytest.raises(EmbeddingFailed, match="not in the OpenAI format"):
        model.embed(["zebra"])
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_its_identity_is_the_models_not_the_addresses(server: EmbeddingServer) -> None:
    here = Remote(server.url, "m", dimensions=8, api_key=SECRET)
    there = Remote("https://elsewhere.example/v1", "m", dimensions=8)
    assert here.identity == there.identity == "remote/m/8"
    assert Remote(server.url, "m", dimensions=9).identity != here.identity
    assert Remote(server.url, "n", dimensions=8).identity != here.identity
    assert here.language_trust("日本") == 1.0
    assert here.similarity_min == -1.0, "nobody knows how near its nearest are"

"""rag.search_vector through MCP."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import (
    CORPUS,
    ENABLED,
    chunks_of,
    docs_of,
    embedding,
    packed,
    posts_server,
    rag,
)
from tests.drivers.server import Server
from zibaldone.embed.hashed import Hashed

QUERY = "amber garnet willow"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("vector") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.mark.requirement("RAG-39", "RAG-40", "RAG-43")
@pytest.mark.parametrize("number", [0, 17, 44, 99])
def test_a_passage_is_nearest_to_itself(tools: Mcp, number: int) -> None:
    text = CORPUS[number].text
    by_text = tools.call("rag.search_vector", query_text=text, k=5)
    by_vector = tools.call("rag.search_vector", query_embedding=embedding(text), k=5)
    assert docs_of(by_text)[0] == CORPUS[number].doc_id
    assert by_text["results"][0]["score_vec"] > 0.999
    assert chunks_of(by_vector) == chunks_of(by_text)


@pytest.mark.requirement("RAG-07", "RAG-43")
def test_the_order_is_that_of_the_cosine(tools: Mcp) -> None:
    vectors = Hashed().embed([post.text for post in ENABLED])
    cosines = vectors @ Hashed().embed([QUERY])[0]
    exact = {post.doc_id: float(cosine) for post, cosine in zip(ENABLED, cosines, strict=True)}
    hits = tools.call("rag.search_vector", query_text=QUERY, k=50)["results"]
    for hit in hits:
        assert hit["score_vec"] == pytest.approx(exact[hit["doc_id"]], abs=0.02)
    missed = sorted(exact.values())[-50] - min(exact[hit["doc_id"]] for hit in hits)
    assert missed < 0.02, "up to the rounding of stored vectors, none that is nearer is left out"


@pytest.mark.requirement("RAG-42")
def test_a_given_vector_wins_over_a_text(tools: Mcp) -> None:
    text, other = CORPUS[5].text, CORPUS[6].text
    both = tools.call("rag.search_vector", query_text=other, query_embedding=embedding(text))
    alone = tools.call("rag.search_vector", query_embedding=embedding(text))
    assert both["results"] == alone["results"]
    assert docs_of(both)[0] == CORPUS[5].doc_id


GOOD = embedding("amber")
SHORT = base64.b64encode(base64.b64decode(GOOD["values_b64"])[:-1]).decode()


@pytest.mark.requirement("RAG-41", "RAG-30")
@pytest.mark.parametrize(
    "given_vector",
    [
        packed([0.5] * 63),
        packed([0.5] * 65),
        {**GOOD, "dim": 32},
        {**GOOD, "dim": 0},
        {**GOOD, "dim": -64},
        {**GOOD, "dim": "many"},
        {**GOOD, "values_b64": SHORT},
        {**GOOD, "values_b64": ""},
        {**GOOD, "values_b64": "not base64!"},
        {**GOOD, "values_b64": "A"},
        {**GOOD, "values_b64": [0.5] * 64},
        packed([float("nan")] + [0.5] * 63),
        packed([float("inf")] + [0.5] * 63),
        packed([0.0] * 64),
        {"dim": 64},
        {},
        [0.5] * 64,
    ],
)
def test_a_wrong_vector_is_refused(tools: Mcp, given_vector: Any) -> None:
    failure = tools.failure("rag.search_vector", query_embedding=given_vector)
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"]["field"].startswith("query_embedding")


@pytest.mark.requirement("RAG-41")
@pytest.mark.parametrize("scale", [1e30, 1e-30, 3.0])
def test_only_the_direction_of_a_vector_counts(server: Server, tools: Mcp, scale: float) -> None:
    text = CORPUS[7].text
    scaled = packed(Hashed().embed([text])[0] * scale)
    found = tools.call("rag.search_vector", query_embedding=scaled)["results"]
    expected = tools.call("rag.search_vector", query_embedding=embedding(text))["results"]
    assert [hit["doc_id"] for hit in found] == [hit["doc_id"] for hit in expected]
    for hit, other in zip(found, expected, strict=True):
        assert hit["score_vec"] == pytest.approx(other["score_vec"], abs=1e-5)
    assert "RuntimeWarning" not in server.log()


@pytest.mark.requirement("RAG-39", "RAG-46")
def test_the_model_may_be_named(tools: Mcp) -> None:
    plain = tools.call("rag.search_vector", query_text=QUERY)
    named = tools.call("rag.search_vector", query_text=QUERY, embedding={"model": "hashed"})
    assert named["results"] == plain["results"]
    failure = tools.failure("rag.search_vector", query_text=QUERY, embedding={"model": "gpt-9"})
    assert failure["code"] == "INVALID_ARGUMENT"
    assert failure["details"] == {"field": "embedding.model", "model": "hashed"}
    assert "gpt-9" in failure["message"]

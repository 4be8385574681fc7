"""rag.search_hybrid through MCP, also with an embedder elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import (
    CORPUS,
    EVERYWHERE,
    IDS,
    MODES,
    EmbeddingServer,
    chunks_of,
    crowded_server,
    embedding_server,
    posts_server,
    rag,
    wait_until_indexed,
    without_time,
)
from tests.drivers.server import Server
from zibaldone.embed.fast import Fast
from zibaldone.extras import missing

QUERY = "amber garnet willow"


HANG_SECONDS = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with posts_server(tmp_path_factory.mktemp("hybrid") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: Server) -> Mcp:
    return rag(server)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mcp]:
    with crowded_server(tmp_path_factory.mktemp("crowded") / "data") as running:
        yield rag(running)


@pytest.mark.requirement("RAG-60", "RAG-61", "RAG-54", "RAG-59")
@pytest.mark.parametrize("mode", MODES)
def test_the_keys_of_a_hybrid_answer_in_each_mode(tools: Mcp, mode: str) -> None:
    answer = tools.call("rag.search_hybrid", query=QUERY, mode=mode, k=7)
    assert answer["results"]
    for hit in answer["results"]:
        assert {*hit} == IDS | {"score", "score_fts", "score_vec", "debug"} | {"title", "metadata"}
        assert {*hit["debug"]} == {"rank_fts", "rank_vec"}
        ranks = [rank for rank in hit["debug"].values() if rank is not None]
        assert ranks
        assert all(type(rank) is int and rank >= 1 for rank in ranks)
        assert (hit["score_fts"] is None) == (hit["debug"]["rank_fts"] is None)
    stats = answer["stats"]
    assert {*stats} >= {"mode", "k_requested", "k_returned", "ms"}
    assert (stats["mode"], stats["k_requested"]) == (mode, 7)
    assert stats["k_returned"] == len(answer["results"]) == 7


@pytest.mark.requirement("RAG-30", "RAG-48")
@pytest.mark.parametrize(
    "more",
    [
        {"mode": "magic"},
        {"mode": 1},
        {"mode": None},
        {"fuse": {"fts_k": 0}},
        {"fuse": {"fts_k": -5}},
        {"fuse": {"rrf_k0": -1}},
        {"fuse": {"w_fts": -0.1}},
        {"fuse": {"w_vec": "1"}},
        {"fuse": {"unknown": 1}},
        {"fts_then_vec": {"candidates_k": 0}},
        {"fts_then_vec": {"rerank_k": "five"}},
        {"fts_then_vec": {"vec_metric": "euclid"}},
        {"convex": {"w_vec": 1.1}},
        {"fuse": []},
    ],
)
def test_wrong_hybrid_options_are_refused(tools: Mcp, more: dict[str, Any]) -> None:
    assert tools.failure("rag.search_hybrid", query=QUERY, **more)["code"] == "INVALID_ARGUMENT"


@pytest.mark.requirement("RAG-47", "RAG-49", "RAG-55")
def test_what_is_left_out_is_the_default(tools: Mcp) -> None:
    fuse = {"fts_k": 50, "vec_k": 50, "rrf_k0": 60, "w_fts": 1.0, "w_vec": 1.0}
    rerank = {"candidates_k": 200, "rerank_k": 50, "vec_metric": "cosine"}
    for query in (QUERY, EVERYWHERE, "quartz"):
        plain = tools.call("rag.search_hybrid", query=query, k=50)
        assert plain["stats"]["mode"] == "fuse"
        explicit = tools.call("rag.search_hybrid", query=query, k=50, mode="fuse", fuse=fuse)
        assert without_time(plain) == without_time(explicit)
        second = tools.call("rag.search_hybrid", query=query, k=50, mode="fts_then_vec")
        explicit = tools.call(
            "rag.search_hybrid", query=query, k=50, mode="fts_then_vec", fts_then_vec=rerank
        )
        assert without_time(second) == without_time(explicit)
    for name, other in (("fts_k", 3), ("vec_k", 3), ("rrf_k0", 1), ("w_fts", 0.2), ("w_vec", 0.2)):
        changed = tools.call("rag.search_hybrid", query=QUERY, k=50, fuse={**fuse, name: other})
        unchanged = tools.call("rag.search_hybrid", query=QUERY, k=50)
        assert changed["results"] != unchanged["results"], f"{name} matters"


@pytest.mark.requirement("RAG-55")
def test_defaults_of_reranking_matter(crowded: Mcp) -> None:
    def ranked(**options: Any) -> list[str]:
        answer = crowded.call(
            "rag.search_hybrid", query="needle", k=50, mode="fts_then_vec", fts_then_vec=options
        )
        return chunks_of(answer)

    assert ranked() == ranked(candidates_k=200, rerank_k=50)
    assert ranked() != ranked(candidates_k=150)
    assert ranked() != ranked(candidates_k=250)
    assert len(ranked(rerank_k=49)) == 49


@pytest.mark.requirement("RAG-51", "RAG-52", "RAG-08", "RAG-54")
@pytest.mark.parametrize(
    "options",
    [
        {"rrf_k0": 60},
        {"rrf_k0": 1, "w_fts": 0.7, "w_vec": 0.3},
        {"rrf_k0": 60, "fts_k": 5, "vec_k": 9},
        {"rrf_k0": 60, "w_vec": 0},
        {"rrf_k0": 0.5, "w_fts": 3.25},
    ],
)
def test_the_fused_score_can_be_computed_again(tools: Mcp, options: dict[str, float]) -> None:
    k0, w_fts, w_vec = (options.get(name, 1) for name in ("rrf_k0", "w_fts", "w_vec"))
    answer = tools.call("rag.search_hybrid", query=QUERY, k=50, fuse=options)
    lexical = chunks_of(tools.call("rag.search_fts", query=QUERY, k=options.get("fts_k", 50)))
    near = chunks_of(tools.call("rag.search_vector", query_text=QUERY, k=options.get("vec_k", 50)))
    found = chunks_of(answer)
    assert len(found) == len({*found})
    assert {*found} <= {*lexical} | {*near}
    assert len(found) == min(50, len({*lexical} | {*near}))
    for hit in answer["results"]:
        by_words, by_meaning = hit["debug"]["rank_fts"], hit["debug"]["rank_vec"]
        score = (w_fts / (k0 + by_words) if by_words else 0) + (
            w_vec / (k0 + by_meaning) if by_meaning else 0
        )
        assert hit["score"] == pytest.approx(score, abs=1e-9)
        chunk_id = hit["chunk_id"]
        assert by_words == (lexical.index(chunk_id) + 1 if chunk_id in lexical else None)
        assert by_meaning == (near.index(chunk_id) + 1 if chunk_id in near else None)


@pytest.mark.requirement("RAG-50")
def test_weights_are_not_rounded(tools: Mcp) -> None:
    found = [
        tools.call("rag.search_hybrid", query=QUERY, k=50, fuse={"w_vec": weight})["results"]
        for weight in (0, 0.3, 0.7, 1)
    ]
    orders = [[hit["score"] for hit in hits] for hits in found]
    assert all(a != b for a, b in pairwise(orders))
    assert len({tuple(hit["chunk_id"] for hit in hits) for hits in found}) > 2


@pytest.mark.requirement("RAG-53")
@pytest.mark.parametrize("mode", MODES)
def test_ties_never_change_places(tools: Mcp, crowded: Mcp, mode: str) -> None:
    """In the crowd all passages match a word equally well."""
    for where, query in ((tools, EVERYWHERE), (crowded, "needle")):
        answers = [
            chunks_of(where.call("rag.search_hybrid", query=query, k=50, mode=mode))
            for _ in range(20)
        ]
        assert len(answers[0]) == 50
        assert all(answer == answers[0] for answer in answers)


@pytest.mark.requirement("RAG-53")
def test_the_top_is_the_top(tools: Mcp) -> None:
    whole = chunks_of(tools.call("rag.search_hybrid", query=QUERY, k=50))
    for k in (1, 3, 20):
        assert chunks_of(tools.call("rag.search_hybrid", query=QUERY, k=k)) == whole[:k]


@pytest.mark.requirement("RAG-56", "RAG-58")
@pytest.mark.parametrize("candidates", [1, 5, 20, 50])
def test_reranking_keeps_to_the_candidates(tools: Mcp, candidates: int) -> None:
    lexical = chunks_of(tools.call("rag.search_fts", query=QUERY, k=candidates))
    options = {"candidates_k": candidates, "rerank_k": 50}
    answer = tools.call(
        "rag.search_hybrid", query=QUERY, k=50, mode="fts_then_vec", fts_then_vec=options
    )
    assert sorted(chunks_of(answer)) == sorted(lexical)
    near = [hit["score_vec"] for hit in answer["results"]]
    assert near == sorted(near, reverse=True), "in the order of their vectors"
    three = tools.call(
        "rag.search_hybrid", query=QUERY, k=3, mode="fts_then_vec", fts_then_vec=options
    )
    assert chunks_of(three) == chunks_of(answer)[:3]


@pytest.fixture(scope="module")
def elsewhere(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Mcp, EmbeddingServer]]:
    with (
        embedding_server() as stub,
        Server(tmp_path_factory.mktemp("remote") / "data", environment=stub.environment) as running,
    ):
        for post in CORPUS[:20]:
            running.create(post.doc_id, post.body, title=post.title)
        wait_until_indexed(running)
        yield rag(running), stub


@pytest.mark.requirement("RAG-57")
@pytest.mark.parametrize("mode", MODES)
def test_only_the_query_is_embedded(elsewhere: tuple[Mcp, EmbeddingServer], mode: str) -> None:
    tools, stub = elsewhere
    query = f"{EVERYWHERE} {mode}"
    before = len(stub.texts)
    answer = tools.call("rag.search_hybrid", query=query, mode=mode, k=20)
    assert len(answer["results"]) == 20
    assert all(hit["score_vec"] is not None for hit in answer["results"])
    assert stub.texts[before:] == [query]


@pytest.mark.requirement("RAG-14", "X-22")
def test_a_slow_embedder(elsewhere: tuple[Mcp, EmbeddingServer]) -> None:
    """Hybrid goes on with keywords and says so; vector search has nothing to go on with."""
    tools, stub = elsewhere
    stub.flowing.clear()
    try:
        started_s = time.monotonic()
        answer = tools.call("rag.search_hybrid", query=f"{EVERYWHERE} slow one")
        assert len(answer["results"]) == 10
        assert all(hit["score_vec"] is None for hit in answer["results"])
        assert "keywords only" in answer["note"]
        assert answer["stats"]["ms"] >= 250, "it gave the embedder its time"
        failure = tools.failure("rag.search_vector", query_text=f"{EVERYWHERE} slow two")
        assert failure["code"] in ("EMBEDDING_FAILED", "DEADLINE_EXCEEDED")
        assert time.monotonic() - started_s < HANG_SECONDS, "both were answered, not left hanging"
    finally:
        stub.flowing.set()


@pytest.mark.skipif(bool(missing(Fast.packages)), reason="fast is not installed")
def test_in_convex_mode_the_model_says_how_far_it_is_to_be_trusted(tmp_path: Path) -> None:
    with Server(tmp_path / "data", environment={"ZIBALDONE_EMBEDDER": "fast"}) as running:
        for post in CORPUS[:20]:
            running.create(post.doc_id, post.body, title=post.title)
        wait_until_indexed(running)
        tools = rag(running)

        def shares(query: str) -> list[float]:
            """The shares of the vectors, in steps of .01, that give the same answer as none."""

            def found(**options: float) -> Any:
                more = {"mode": "convex", "convex": options, "k": 20}
                return tools.call("rag.search_hybrid", query=query, **more)["results"]

            chosen = [round(hit["score"], 3) for hit in found()]
            tried = {share / 100: found(w_vec=share / 100) for share in range(5, 95)}
            return [
                share
                for share, hits in tried.items()
                if all(
                    abs(hit["score"] - score) < 0.006
                    for hit, score in zip(hits, chosen, strict=True)
                )
            ]

        english, accented = shares(EVERYWHERE), shares(f"{EVERYWHERE} café")
        assert english
        assert accented
        assert max(accented) < min(english)

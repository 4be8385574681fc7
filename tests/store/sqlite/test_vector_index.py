"""The vectors in memory: what is found is what an exact scan of the same vectors would find."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from zibaldone.store.sqlite import vector_index
from zibaldone.store.sqlite.vector_index import StoredVector, VectorIndex, pack

Floats = npt.NDArray[np.float32]


def unit_rows(rows: int, dimensions: int, seed: int = 0) -> Floats:
    made = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    unit: Floats = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def unpacked(packed: bytes) -> Floats:
    scale = np.frombuffer(packed[:4], np.float32)[0]
    values: Floats = np.frombuffer(packed[4:], np.int8).astype(np.float32) * scale
    return values


def stored(
    rows: Floats, *, first: int = 1, namespace: str = "n", source_id: int = 1, per_document: int = 3
) -> list[StoredVector]:
    return [
        StoredVector(key, key // per_document, namespace, source_id, pack(row))
        for key, row in enumerate(rows, first)
    ]


def exact(held: list[StoredVector], query: Floats, k: int) -> list[int]:
    """The nearest by what is stored, ties by key: the definition."""
    cosines = {one.chunk_key: float(unpacked(one.packed) @ query) for one in held}
    return sorted(cosines, key=lambda key: (-round(cosines[key], 5), key))[:k]


def found(index: VectorIndex, query: Floats, k: int, **more: Any) -> list[tuple[int, float]]:
    arguments = {"namespace": "n", "sources": [1], "documents": None, **more}
    return index.search(query, k, **arguments)


@pytest.mark.parametrize("dimensions", [1, 2, 7, 63, 64, 65, 100, 384])
def test_a_small_index_finds_exactly_the_nearest(dimensions: int) -> None:
    """Also where the dimensions do not fill the words that their signs are kept in."""
    held = stored(unit_rows(300, dimensions, seed=dimensions))
    index = VectorIndex(dimensions)
    index.put(held)
    for query in unit_rows(20, dimensions, seed=1000 + dimensions):
        hits = found(index, query, 10)
        scores = [score for _, score in hits]
        assert scores == sorted(scores, reverse=True)
        best = sorted((float(unpacked(one.packed) @ query) for one in held), reverse=True)[:10]
        assert scores == pytest.approx(np.minimum(best, 1.0), abs=1e-5)
        for key, score in hits:
            assert float(unpacked(held[key - 1].packed) @ query) == pytest.approx(score, abs=1e-5)


def recall(rows: Floats, queries: Floats) -> float:
    """Of the ten nearest among the vectors as they were before they were made small."""
    index = VectorIndex(rows.shape[1])
    index.put(stored(rows))
    right = 0
    for query in queries:
        nearest = set(np.argsort(-(rows @ query))[:10] + 1)
        right += len(nearest & {key for key, _ in found(index, query, 10)})
    return right / (10 * len(queries))


@pytest.mark.parametrize("dimensions", [256, 384])
def test_the_recall_among_thousands_is_high_even_where_nothing_is_alike(dimensions: int) -> None:
    assert recall(unit_rows(5_000, dimensions), unit_rows(100, dimensions, seed=1)) >= 0.98


def about_topics(rows: int, topics: Floats, seed: int) -> Floats:
    """Vectors as texts give them: around topics, some near, some far."""
    random = np.random.default_rng(seed)
    centres = topics[random.integers(0, len(topics), rows)]
    made = centres + unit_rows(rows, topics.shape[1], seed) * random.uniform(0.5, 1.5, (rows, 1))
    unit: Floats = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_the_recall_by_signs_first_is_high_among_texts_that_are_alike() -> None:
    topics = unit_rows(400, 384, seed=4)
    rows, queries = about_topics(20_000, topics, 5), about_topics(60, topics, 6)
    assert len(rows) > vector_index.EXACT_ROWS_MAX
    assert recall(rows, queries) >= 0.98


def test_where_nothing_is_alike_more_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without that, signs miss some: a proof that these tests can fail."""
    rows, queries = unit_rows(30_000, 384), unit_rows(40, 384, seed=1)
    assert recall(rows, queries) >= 0.95
    monkeypatch.setattr(vector_index, "_RESCORED_MAX", vector_index.RESCORED_MIN)
    assert 0.5 < recall(rows, queries) < 0.9


@settings(max_examples=60)
@given(
    dimensions=st.integers(1, 400), seed=st.integers(0, 2**32 - 1), spikes=st.floats(0.001, 50.0)
)
def test_what_is_stored_is_as_near_as_its_steps_allow(
    dimensions: int, seed: int, spikes: float
) -> None:
    vector = unit_rows(1, dimensions, seed)[0]
    vector[0] *= np.float32(spikes)  # one large value makes the steps of all others coarse
    vector /= max(float(np.linalg.norm(vector)), 1e-12)
    back = unpacked(pack(vector))
    assert float(np.linalg.norm(back)) == pytest.approx(1.0, abs=1e-5)
    half_step = float(np.abs(vector).max()) / 127 / 2
    # Rounding moves it by this much at most, bringing it back to unit length by no more again.
    assert float(np.linalg.norm(back - vector)) <= 2 * half_step * dimensions**0.5 + 1e-6
    for query in unit_rows(5, dimensions, seed ^ 1):
        assert (
            abs(float(back @ query) - float(vector @ query))
            <= half_step * dimensions**0.5 * 2 + 1e-6
        )


def test_a_vector_of_zeros_is_near_nothing() -> None:
    packed = pack(np.zeros(8, np.float32))
    assert not unpacked(packed).any()
    index = VectorIndex(8)
    index.put([StoredVector(1, 1, "n", 1, packed)])
    assert found(index, unit_rows(1, 8)[0], 5) == [(1, 0.0)]


def test_no_cosine_is_above_one() -> None:
    rows = unit_rows(200, 48)
    index = VectorIndex(48)
    index.put(stored(rows))
    for key, row in enumerate(rows, 1):
        (first, score), *_ = found(index, row, 3)
        assert first == key
        assert 0.999 < score <= 1.0
        assert index.scores(row, [key], namespace="n")[key] <= 1.0


def test_an_empty_index_finds_nothing() -> None:
    index = VectorIndex(16)
    query = unit_rows(1, 16)[0]
    assert found(index, query, 5) == []
    assert index.scores(query, [1, 2], namespace="n") == {}
    index.put(stored(unit_rows(3, 16)))
    index.remove([1, 2, 3])
    assert len(index) == 0
    assert found(index, query, 5) == []
    assert found(index, query, 5, namespace="other") == []


def test_equal_vectors_come_in_the_order_of_their_keys() -> None:
    row = unit_rows(1, 32)
    index = VectorIndex(32)
    index.put(stored(np.repeat(row, 1_000, axis=0)))
    assert [key for key, _ in found(index, row[0], 20)] == list(range(1, 21))


def test_vectors_of_another_length_are_left_out() -> None:
    index = VectorIndex(16)
    index.put([*stored(unit_rows(3, 16)), *stored(unit_rows(2, 17), first=10)])
    assert len(index) == 3
    assert {key for key, _ in found(index, unit_rows(1, 16)[0], 9)} == {1, 2, 3}


@pytest.mark.parametrize("count", [300, 12_000])
def test_masks_leave_exactly_what_is_allowed(count: int) -> None:
    """Filters come before the cut, so that a rare kind is found however many others are nearer."""
    rows = unit_rows(count, 64)
    held = [
        StoredVector(key, key // 3, "ab"[key % 2], 1 + key % 3, pack(row))
        for key, row in enumerate(rows, 1)
    ]
    index = VectorIndex(64)
    index.put(held)
    query = unit_rows(1, 64, seed=9)[0]
    wanted = [
        ("b", [1], None),
        ("a", [1, 2, 3], None),
        ("a", [2], {1, 2, 3}),
        ("b", [1, 2, 3], set(range(0, count // 3, 7))),
        ("a", [3], {5}),
        ("a", [9], None),
        ("a", [], None),
        ("b", [1, 2, 3], set()),
        ("b", [1, 2, 3], {10**7}),
    ]
    for namespace, sources, documents in wanted:
        allowed = [
            one
            for one in held
            if one.namespace == namespace
            and one.source_id in sources
            and (documents is None or one.document_key in documents)
        ]
        hits = index.search(
            query,
            10,
            namespace=namespace,
            sources=sources,
            documents=None if documents is None else np.array(sorted(documents), np.int64),
        )
        keys = [key for key, _ in hits]
        assert set(keys) <= {one.chunk_key for one in allowed}
        assert len(keys) == min(10, len(allowed))
        if len(allowed) <= vector_index.EXACT_ROWS_MAX:
            assert keys == exact(allowed, query, 10)


def test_a_search_among_many_is_the_same_after_some_were_removed() -> None:
    """Rows that are free must neither be found nor make the others be missed."""
    rows = unit_rows(12_000, 64)
    held = stored(rows)
    index = VectorIndex(64)
    index.put(held)
    index.remove(range(1, 5_000, 3))
    fresh = VectorIndex(64)
    fresh.put([one for one in held if one.chunk_key not in range(1, 5_000, 3)])
    for query in unit_rows(20, 64, seed=3):
        ours, theirs = found(index, query, 10), found(fresh, query, 10)
        assert [key for key, _ in ours] == [key for key, _ in theirs]


def test_its_size_is_said() -> None:
    index = VectorIndex(384)
    empty = index.size_bytes
    index.put(stored(unit_rows(20_000, 384)))
    per_vector = (index.size_bytes - empty) / 20_000
    assert 384 + 48 < per_vector < 2 * (384 + 48)


class Following(RuleBasedStateMachine):
    """Whatever was put, replaced and removed: the same as an index made of what is left."""

    @initialize(dimensions=st.sampled_from([3, 64, 70]))
    def begin(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.index = VectorIndex(dimensions)
        self.held: dict[int, StoredVector] = {}

    @rule(
        keys=st.lists(st.integers(1, 2_000), max_size=60, unique=True),
        seed=st.integers(0, 10**6),
        namespace=st.sampled_from("nm"),
    )
    def put(self, keys: list[int], seed: int, namespace: str) -> None:
        rows = unit_rows(len(keys), self.dimensions, seed)
        made = [
            StoredVector(key, key // 3, namespace, 1, pack(row))
            for key, row in zip(keys, rows, strict=True)
        ]
        self.index.put(made)
        self.held.update((one.chunk_key, one) for one in made)

    @rule(seed=st.integers(0, 10**6))
    def put_many(self, seed: int) -> None:
        made = stored(unit_rows(1_500, self.dimensions, seed), first=3_000)
        self.index.put(made)
        self.held.update((one.chunk_key, one) for one in made)

    @rule(keys=st.lists(st.integers(1, 4_600), max_size=60))
    def remove(self, keys: list[int]) -> None:
        self.index.remove(keys)
        for key in keys:
            self.held.pop(key, None)

    @invariant()
    def it_is_as_a_fresh_one(self) -> None:
        if not hasattr(self, "index"):
            return
        fresh = VectorIndex(self.dimensions)
        fresh.put(list(self.held.values()))
        assert len(self.index) == len(fresh) == len(self.held)
        query = unit_rows(1, self.dimensions, seed=5)[0]
        for namespace in "nm":
            ours = found(self.index, query, 7, namespace=namespace)
            theirs = found(fresh, query, 7, namespace=namespace)
            assert [key for key, _ in ours] == [key for key, _ in theirs]
            keys = range(1, 4_600, 7)
            assert self.index.scores(query, keys, namespace=namespace) == pytest.approx(
                fresh.scores(query, keys, namespace=namespace)
            )


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=25, stateful_step_count=15)

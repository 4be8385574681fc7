"""Vectors: the nearest that a caller may see and asked for, by whichever process they were made."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, HASHED, Kept, Two
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.document import Document
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import Chunk
from zibaldone.text.facets import folded_tags

Floats = npt.NDArray[np.float32]
MODEL = "model/of/this/test"
DIMENSIONS = 48


def unit_rows(rows: int, seed: int, dimensions: int = DIMENSIONS) -> Floats:
    made = np.random.default_rng(seed).standard_normal((rows, dimensions)).astype(np.float32)
    unit: Floats = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


class Vectors:
    """A store whose vectors the tests choose themselves; it knows what a search must bring."""

    def __init__(self, kept: Kept, backend: Backend, dimensions: int = DIMENSIONS) -> None:
        self.kept = kept
        self.backend = backend
        self.dimensions = dimensions
        self.model_id = kept.upkeep(lambda work: work.models.id(MODEL, dimensions, 0))
        self.by_key: dict[int, tuple[Document, Floats]] = {}
        self.tenants: dict[int, Tenant] = {}
        """By document key."""

    def add(self, document: Document, rows: Floats) -> list[int]:
        """Give a stored document these passages and vectors."""
        chunks = [Chunk(n, n, n + 1, "", f"{document.document_id} {n}") for n in range(len(rows))]
        tenant = self.tenants[document.storage_key or 0]
        self.kept.put_chunks(document, chunks, tenant)
        found = self.backend.query(
            f"SELECT chunk_key FROM chunks WHERE document_key = {document.storage_key} "
            "ORDER BY chunk_index"
        )
        keys = [key for (key,) in found]
        self.kept.upkeep(lambda work: work.vectors.put(self.model_id, keys, rows))
        self.by_key.update((key, (document, row)) for key, row in zip(keys, rows, strict=True))
        return keys

    def create(
        self, path: str, rows: Floats, tenant: Tenant = EVERYTHING, **more: object
    ) -> Document:
        document = self.kept.create(path, "", tenant, **more)
        self.tenants[document.storage_key or 0] = tenant
        self.add(document, rows)
        return document

    def search(
        self, query: Floats, k: int = 10, wanted: Filter = NO_FILTER, tenant: Tenant = EVERYTHING
    ) -> list[tuple[int, float]]:
        return self.kept.read(lambda reader: reader.vectors.search(MODEL, query, k, wanted), tenant)

    def nearest(self, query: Floats, k: int, fits: Callable[[int], bool]) -> list[float]:
        cosines = [float(row @ query) for key, (_, row) in self.by_key.items() if fits(key)]
        return sorted(cosines, reverse=True)[:k]

    def require(
        self,
        query: Floats,
        wanted: Filter,
        fits: Callable[[Document], bool],
        tenant: Tenant = EVERYTHING,
        k: int = 10,
    ) -> None:
        hits = self.search(query, k, wanted, tenant)
        allowed = {
            key
            for key, (document, _) in self.by_key.items()
            if fits(document)
            and self.tenants[document.storage_key or 0].namespace == tenant.namespace
        }
        assert {key for key, _ in hits} <= allowed
        expected = self.nearest(query, k, allowed.__contains__)
        assert [score for _, score in hits] == pytest.approx(expected, abs=0.01)
        for key, score in hits:
            assert float(self.by_key[key][1] @ query) == pytest.approx(score, abs=0.01)


@pytest.fixture
def vectors(kept: Kept, backend: Backend) -> Vectors:
    return Vectors(kept, backend)


def everything(document: Document) -> bool:
    del document
    return True


def test_nothing_is_found_where_there_is_nothing(kept: Kept, vectors: Vectors) -> None:
    query = unit_rows(1, 0)[0]
    assert vectors.search(query) == []
    assert kept.read(lambda reader: reader.vectors.search("no such model", query, 5)) == []
    assert kept.read(lambda reader: reader.vectors.scores("no such model", query, [1])) == {}
    coverage = kept.read(lambda reader: reader.vectors.coverage(MODEL))
    assert (coverage.pending, coverage.has_model) == (0, False)


@pytest.mark.parametrize("dimensions", [1, 3, 64, 100, 384])
def test_the_nearest_come_first_with_their_cosine(
    kept: Kept, backend: Backend, dimensions: int
) -> None:
    vectors = Vectors(kept, backend, dimensions)
    for number in range(6):
        vectors.create(f"d/{number}", unit_rows(25, number, dimensions))
    for query in unit_rows(10, 99, dimensions):
        vectors.require(query, NO_FILTER, everything)
        vectors.require(query, NO_FILTER, everything, k=1_000)
        vectors.require(query, NO_FILTER, everything, k=1)


def test_the_recall_among_thousands_is_high(kept: Kept, vectors: Vectors) -> None:
    rows = unit_rows(5_000, 1)
    for number in range(5):
        vectors.create(f"d/{number}", rows[number * 1_000 : (number + 1) * 1_000])
    right = 0
    keys = np.array(list(vectors.by_key))
    for query in unit_rows(50, 2):
        nearest = set(keys[np.argsort(-(rows @ query))[:10]])
        right += len(nearest & {key for key, _ in vectors.search(query)})
    assert right / 500 >= 0.98


OLD, NEW = 1_000_000, 9_000_000

FILTERS: dict[str, tuple[Filter, Callable[[Document], bool]]] = {
    "everything": (NO_FILTER, everything),
    "prefix": (Filter(prefix="a/"), lambda one: one.document_id.startswith("a/")),
    "prefix of one": (Filter(prefix="b/1"), lambda one: one.document_id.startswith("b/1")),
    "prefix of none": (Filter(prefix="zz"), lambda one: False),
    "ids": (
        Filter(document_ids=("a/1", "b/2", "none")),
        lambda one: one.document_id in ("a/1", "b/2"),
    ),
    "no ids": (Filter(document_ids=()), lambda one: False),
    "other than": (
        Filter(without_ids=("a/1", "b/2", "none")),
        lambda one: one.document_id not in ("a/1", "b/2"),
    ),
    "other than no one": (Filter(without_ids=()), everything),
    "any tag": (
        Filter(tags_any=folded_tags(("Red", "blue"))),
        lambda one: bool({"red", "blue"} & {*map(str.lower, one.tags)}),
    ),
    "no tag of none": (Filter(tags_any=()), lambda one: False),
    "all tags": (
        Filter(tags_all=("red", "round")),
        lambda one: {"red", "round"} <= {*map(str.lower, one.tags)},
    ),
    "the same tag twice": (
        Filter(tags_all=folded_tags(("red", "RED "))),
        lambda one: "red" in map(str.lower, one.tags),
    ),
    "all of no tags": (Filter(tags_all=()), everything),
    "source": (Filter(source_ids=(1,)), lambda one: one.source_id == 1),
    "other source": (Filter(source_ids=(7,)), lambda one: one.source_id == 7),
    "source by name": (Filter(source_names=("shop",)), lambda one: one.source_id == 7),
    "both sources": (Filter(source_names=("shop", "kb")), everything),
    "no such source": (Filter(source_ids=(1,), source_names=("shop",)), lambda one: False),
    "after": (Filter(created_after_us=NEW), lambda one: one.created_at_us >= NEW),
    "before": (Filter(created_before_us=NEW), lambda one: one.created_at_us < NEW),
    "score": (Filter(min_score=5), lambda one: one.metadata.get("Score", 0) >= 5),
    "post type": (
        Filter(post_type_ids=(2, 3)), lambda one: one.metadata.get("PostTypeId") in (2, 3),
    ),
    "several": (
        Filter(prefix="a/", tags_any=("red",), created_before_us=NEW, source_ids=(1, 7)),
        lambda one: one.document_id.startswith("a/")
        and "red" in map(str.lower, one.tags)
        and one.created_at_us < NEW,
    ),
    # An id named twice must not count as agreement with another condition.
    "an id twice and a tag it lacks": (
        Filter(document_ids=("b/3", "b/3"), tags_all=("round",)),
        lambda one: one.document_id == "b/3" and "round" in one.tags,
    ),
}  # fmt: skip


@pytest.fixture
def varied(kept: Kept, vectors: Vectors, backend: Backend) -> Vectors:
    """Two dozen documents in two namespaces that differ in all that can be filtered by."""
    backend.execute(
        "INSERT INTO sources (source_id, namespace, name, kind, created_at_us) "
        "VALUES (7, '*', 'shop', 'mysql', 0)"
    )
    tags = ((), ("Red",), ("red", "round"), ("blue",))
    for number in range(16):
        path = f"{'ab'[number % 2]}/{number // 2}"
        made = kept.create(f"tmp/{number}", "")
        document = replace(
            made,
            document_id=path,
            tags=tags[number % 4],
            source_id=7 if number % 3 == 0 else 1,
            created_at_us=OLD if number < 8 else NEW,
            metadata={"Score": number, "PostTypeId": number % 4},
            storage_key=None,
        )
        stored = kept.commit(None, document)
        vectors.tenants[stored.storage_key or 0] = EVERYTHING
        vectors.add(stored, unit_rows(7, number))
    for number in range(4):
        vectors.create(f"a/{number}", unit_rows(7, 50 + number), Tenant("elsewhere"), tags=("red",))
    return vectors


def test_filters_are_applied_before_the_cut(varied: Vectors) -> None:
    for name, (wanted, fits) in FILTERS.items():
        admitted = [one for one, _ in varied.by_key.values() if fits(one)]
        for query in unit_rows(4, 77):
            varied.require(query, wanted, fits)
        assert admitted or "no" in name.split() or "none" in name or name.startswith("an id"), name


def test_a_namespace_and_a_folder_see_only_their_own(varied: Vectors) -> None:
    query = unit_rows(1, 78)[0]
    varied.require(query, NO_FILTER, everything, Tenant("elsewhere"))
    varied.require(
        query, Filter(prefix="a/1"), lambda one: one.document_id == "a/1", Tenant("elsewhere")
    )
    assert varied.search(query, tenant=Tenant("nowhere")) == []
    inside = Tenant(prefix="b/")
    varied.require(query, NO_FILTER, lambda one: one.document_id.startswith("b/"), inside)
    varied.require(query, Filter(prefix="a/"), lambda one: False, inside)
    varied.require(query, Filter(document_ids=("a/1",)), lambda one: False, inside)


def test_a_disabled_source_is_not_searched(varied: Vectors, backend: Backend) -> None:
    query = unit_rows(1, 79)[0]
    backend.execute("UPDATE sources SET enabled = 0 WHERE source_id = 7")
    varied.require(query, NO_FILTER, lambda one: one.source_id == 1)
    assert varied.search(query, wanted=Filter(source_names=("shop",))) == []


def test_scores_are_those_of_a_search_and_only_of_what_is_visible(
    kept: Kept, varied: Vectors
) -> None:
    query = unit_rows(1, 80)[0]
    everything_found = dict(varied.search(query, 10_000))
    keys = [*varied.by_key, 10**9]

    def scores(tenant: Tenant) -> dict[int, float]:
        return kept.read(lambda reader: reader.vectors.scores(MODEL, query, keys), tenant)

    assert scores(EVERYTHING) == pytest.approx(everything_found)
    inside = {
        key
        for key, (one, _) in varied.by_key.items()
        if one.document_id.startswith("b/") and key in everything_found
    }
    assert scores(Tenant(prefix="b/")).keys() == inside
    assert scores(Tenant("elsewhere")).keys().isdisjoint(everything_found)
    assert scores(Tenant("nowhere")) == {}


def test_a_deleted_document_is_not_found(kept: Kept, vectors: Vectors) -> None:
    vectors.create("a", unit_rows(5, 0))
    gone = vectors.create("b", unit_rows(5, 1))
    query = unit_rows(1, 2)[0]
    assert len(vectors.search(query)) == 10
    kept.delete("b")
    vectors.require(query, NO_FILTER, lambda one: one.document_id != gone.document_id)
    assert len(vectors.search(query)) == 5


def test_models_do_not_mix(kept: Kept, vectors: Vectors) -> None:
    vectors.create("a", unit_rows(3, 0))
    other = kept.upkeep(lambda work: work.models.id("another", 5, 0))
    keys = list(vectors.by_key)
    rows = unit_rows(3, 1, 5)
    kept.upkeep(lambda work: work.vectors.put(other, keys, rows))
    ((key, score),) = kept.read(lambda reader: reader.vectors.search("another", rows[1], 1))
    assert key == keys[1]
    assert score == pytest.approx(1.0, abs=0.01)
    vectors.require(unit_rows(1, 5)[0], NO_FILTER, everything)
    assert [model.vectors for model in kept.upkeep(lambda work: work.models.all())] == [3, 3]


def test_coverage_counts_what_waits_for_a_tenant(kept: Kept, vectors: Vectors) -> None:
    for path in ("a/1", "a/2", "b/1"):
        kept.create(path, "text")
    kept.create("a/1", "text", Tenant("elsewhere"))
    kept.create("registries/x", "text")
    kept.create("a/gone", "text")
    kept.delete("a/gone")

    def coverage(tenant: Tenant = EVERYTHING) -> tuple[int, bool]:
        found = kept.read(lambda reader: reader.vectors.coverage(MODEL), tenant)
        return found.pending, found.has_model

    assert coverage() == (3, False)
    assert coverage(Tenant(prefix="a/")) == (2, False)
    assert coverage(Tenant("elsewhere")) == (1, False)
    vectors.create("c", unit_rows(1, 0))
    assert coverage() == (3, True)
    assert coverage(Tenant("elsewhere")) == (1, True), "of whatever namespace the vectors are"


@pytest.fixture
def two(backend: Backend) -> Iterator[Two]:
    limits = Limits()
    first, second = backend.open(limits), backend.open(limits)
    yield Two(Kept(first, limits), Kept(second, limits))
    second.close()
    first.close()


def test_what_one_process_writes_the_next_search_of_another_finds(two: Two) -> None:
    two.here.create("a", "zebra")
    two.here.index()
    assert [text for text, _ in two.there.nearest("zebra")] == ["zebra"]
    two.here.create("b", "zebra crossing")
    assert [text for text, _ in two.there.nearest("zebra")] == ["zebra"]
    two.here.index()
    assert [text for text, _ in two.there.nearest("zebra")] == ["zebra", "zebra crossing"]
    two.there.delete("a")
    assert [text for text, _ in two.here.nearest("zebra")] == ["zebra crossing"]
    two.here.update("b", body="lion")
    assert two.there.nearest("zebra") == []
    two.here.index()
    assert [text for text, _ in two.there.nearest("zebra")] == ["lion"]


def test_following_changes_is_the_same_as_reading_anew(two: Two, backend: Backend) -> None:
    """After any changes, by either process, both find what one finds that has just begun."""
    luck = random.Random(7)
    words = [f"word{number}" for number in range(40)]
    for step in range(30):
        writer = luck.choice((two.here, two.there))
        for _ in range(luck.randrange(1, 6)):
            path = f"d/{luck.randrange(12)}"
            body = "\n\n".join(
                " ".join(luck.choices(words, k=30)) * 6 for _ in range(luck.randrange(1, 5))
            )
            known = writer.get(path)
            if known is None or not known.is_live:
                writer.create(path, body)
            elif luck.random() < 0.3:
                writer.delete(path)
            else:
                writer.update(path, body=body)
        if luck.random() < 0.7:
            two.here.index()
        if luck.random() < 0.2:
            backend.forget_vector_changes(luck.randrange(3))
        if step % 3 == 0:
            fresh = backend.open(Limits())
            try:
                query = " ".join(luck.choices(words, k=5))
                expected = Kept(fresh, Limits()).nearest(query)
                assert two.here.nearest(query) == expected
                assert two.there.nearest(query) == expected
            finally:
                fresh.close()


def test_a_process_that_fell_behind_reads_everything_again(two: Two, backend: Backend) -> None:
    two.here.create("a", "zebra")
    two.here.index()
    assert len(two.there.nearest("zebra")) == 1
    for number in range(8):
        two.here.create(f"b/{number}", f"zebra {number}")
    two.here.delete("a")
    two.here.index()
    backend.forget_vector_changes(2)
    assert len(two.there.nearest("zebra")) == 8
    assert "zebra" not in [text for text, _ in two.there.nearest("zebra")]


def test_dropping_a_models_vectors_is_seen_by_others(two: Two) -> None:
    two.here.create("a", "zebra")
    two.here.index()
    assert len(two.there.nearest("zebra")) == 1
    model_id = two.here.upkeep(lambda work: work.models.id(HASHED.identity, 64, 0))
    assert two.here.upkeep(lambda work: work.vectors.drop(model_id, 100)) == 1
    assert two.here.upkeep(lambda work: work.vectors.drop(model_id, 100)) == 0
    assert two.there.nearest("zebra") == two.here.nearest("zebra") == []
    two.here.create("b", "zebra")
    two.here.index()
    assert len(two.there.nearest("zebra")) == 1


def test_putting_a_vector_for_a_passage_that_is_gone_leaves_nothing(
    kept: Kept, vectors: Vectors, backend: Backend
) -> None:
    vectors.create("a", unit_rows(1, 0))
    (key,) = vectors.by_key
    kept.delete("a")

    def late(work: Upkeep) -> None:
        work.vectors.put(vectors.model_id, [key], unit_rows(1, 3))

    kept.upkeep(late)
    assert backend.query("SELECT count(*) FROM vectors") == [(0,)]
    assert vectors.search(unit_rows(1, 3)[0]) == []

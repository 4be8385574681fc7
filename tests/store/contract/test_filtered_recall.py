"""Of the nearest vectors that pass a filter, nearly all are found, however few pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from tests.store.backends import BACKENDS, Backend
from tests.store.kept import ACTOR, Kept
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store.port import Writer
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import Chunk
from zibaldone.text.chunk_changes import chunk_changes

Floats = npt.NDArray[np.float32]

MODEL = "model/of/this/test"
DIMENSIONS = 48
SIZES = {"0.1%": 21, "1%": 210, "5%": 1_050, **{f"other {n}": 1_000 for n in range(20)}}
"""Documents by their tags, with how many chunks they have: 21 281 in all."""
CHUNKS = sum(SIZES.values())
PER_CLUSTER = 30
"""Vectors that are close to each other, in any documents."""
QUERIES = 30
K = 10


def unit(rows: Floats) -> Floats:
    made: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


def clustered(rows: int) -> Floats:
    luck = np.random.default_rng(3)
    centres = luck.standard_normal((rows // PER_CLUSTER, DIMENSIONS))
    of_row = luck.integers(0, len(centres), rows)
    return unit((centres[of_row] + luck.standard_normal((rows, DIMENSIONS))).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Corpus:
    kept: Kept
    rows: Floats
    """By chunk key less the first."""
    first_key: int
    tags: list[str]
    """The same for the tag of each."""

    def recall(self, tag: str | None, *, asked: int = QUERIES) -> float:
        """What share of the true nearest is found; all that is found has to pass."""
        luck = np.random.default_rng(4)
        near = luck.choice(len(self.rows), asked)
        noise = 0.05 * luck.standard_normal((asked, DIMENSIONS))
        queries = unit((self.rows[near] + noise).astype(np.float32))
        passing = np.array([n for n, of_row in enumerate(self.tags) if tag in (None, of_row)])
        wanted = NO_FILTER if tag is None else Filter(tags_any=(tag,))
        right = 0
        for query in queries:
            hits = self.kept.read(
                lambda reader, query=query: reader.vectors.search(MODEL, query, K, wanted)  # type: ignore[misc]
            )
            places = {key - self.first_key for key, _ in hits}
            assert len(places) == K
            assert places <= set(passing.tolist())
            right += len(places & set(passing[np.argsort(-(self.rows[passing] @ query))[:K]]))
        return right / (K * asked)


def fill(kept: Kept, backend: Backend) -> Corpus:
    """Store documents whose chunks have vectors."""

    def write(writer: Writer, tag: str, size: int) -> None:
        document = create(writer, NewDocument(f"d/{tag}", "", tags=(tag,)), ACTOR, kept.limits)[0]
        chunks = [Chunk(n, n, n + 1, "", f"c{n}") for n in range(size)]
        writer.chunks.apply(document, chunk_changes([], document.title, chunks))

    for tag, size in SIZES.items():
        kept.write(lambda writer, tag=tag, size=size: write(writer, tag, size))  # type: ignore[misc]
    keys = [
        key
        for (key,) in backend.query(
            "SELECT chunk_key FROM chunks ORDER BY document_key, chunk_index"
        )
    ]
    assert keys == list(range(keys[0], keys[0] + CHUNKS))
    rows = clustered(len(keys))

    def put(work: Upkeep) -> None:
        work.vectors.put(work.models.id(MODEL, DIMENSIONS, 0), keys, rows)

    kept.upkeep(put)
    return Corpus(kept, rows, keys[0], [tag for tag, size in SIZES.items() for _ in range(size)])


@pytest.fixture(scope="module", params=BACKENDS)
def corpus(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Corpus]:
    backend = BACKENDS[request.param](tmp_path_factory.mktemp("recall"))
    kept = Kept(backend.open(Limits()), Limits())
    filled = fill(kept, backend)
    asyncio.run(kept.store.prepare_model(MODEL))
    yield filled
    kept.store.close()
    backend.close()


@pytest.mark.parametrize("tag", ["5%", "1%", "0.1%", None])
def test_the_nearest_that_pass_are_found(corpus: Corpus, tag: str | None) -> None:
    assert corpus.recall(tag) >= 0.95

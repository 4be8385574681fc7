"""Does `relevance` tell questions with an answer from questions without?

    python -m benchmarks.answerable --data DIR [--sets cranfield,xquad_en] [--embedder fast]
    python -m benchmarks.answerable --data DIR --fit

Through a running server: each set's corpus is asked its own questions and those of the other sets.
DIR is as for `benchmarks.quality`. Printed are the area under the curve of the best hit's relevance
(1: every own question is above every strange one; .5: chance) for each pair and over all, and how
many answers of each kind were `weak`. `--embedder none` measures the words alone, `--leg vector`
(`rag.search_vector`) the cosines alone.

`--fit` searches in this process instead and prints the curves for `find/relevance.py`: fitted on
the hits that are judged relevant, against the best three hits of strange questions and, for half of
the weight, the hits of own questions from the third on that are not judged relevant.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality import Ours, RetrievalSet, load, read_set
from benchmarks.servers.process import zibaldone
from zibaldone.access.principal import Tenant
from zibaldone.find.documents import search_documents
from zibaldone.find.meaning import meaning_of
from zibaldone.find.parse import checked_query
from zibaldone.model.query import NO_FILTER
from zibaldone.settings import load as load_settings
from zibaldone.wiring.runtime import build_runtime

_HITS = 10
_STRANGE_HITS = 3
_HARD_FROM = 2
_HARD_WEIGHT = 0.5
_SPARSE_JUDGEMENTS = {"cranfield"}
"""Sets in which many a hit that is not judged relevant is."""


class Asked(NamedTuple):
    best: list[float]
    """The relevance of the best hit; 0 where there is none."""
    weak: list[bool]


def area(own: Sequence[float], strange: Sequence[float]) -> float:
    """How likely one of the first is above one of the second; equals count half."""
    below = sorted(strange)
    ranks = (bisect_left(below, value) + bisect_right(below, value) for value in own)
    return sum(ranks) / 2 / len(own) / len(below)


def measure(corpus: RetrievalSet, sets: Sequence[RetrievalSet], leg: str, embedder: str) -> Any:
    with (
        tempfile.TemporaryDirectory() as folder,
        zibaldone(Path(folder) / "data", embedder=embedder) as server,
    ):
        url = f"http://127.0.0.1:{server.port}"
        load(url, corpus, "")
        ours = Ours(url, "")
        ask = _vector(ours) if leg == "vector" else _knowledge(ours)
        return {asked.name: _asked(map(ask, asked.queries.values())) for asked in sets}


def _knowledge(ours: Ours) -> Callable[[str], dict[str, Any]]:
    return lambda query: ours.call("/mcp", "search_knowledge", {"query": query, "limit": _HITS})


def _vector(ours: Ours) -> Callable[[str], dict[str, Any]]:
    return lambda query: ours.call(
        "/mcp-rag", "rag.search_vector", {"query_text": query, "k": _HITS}
    )


def _asked(answers: Iterator[dict[str, Any]]) -> Asked:
    best, weak = [], []
    for answer in answers:
        best.append(max((hit["relevance"] for hit in answer["results"]), default=0.0))
        weak.append(bool(answer.get("weak", not answer["results"])))
    return Asked(best, weak)


def _print(results: dict[str, dict[str, Asked]]) -> None:
    names = list(results)
    print("\n| AUC: corpus, by questions of | " + " | ".join(names) + " | weak: own, strange |")
    print("|---" * (len(names) + 2) + "|")
    own_best: list[float] = []
    strange_best: list[float] = []
    own_weak: list[bool] = []
    strange_weak: list[bool] = []
    for corpus, asked in results.items():
        own = asked[corpus]
        strange = [asked[name] for name in names if name != corpus]
        cells = ["" if n == corpus else f"{area(own.best, asked[n].best):.3f}" for n in names]
        weak = [flag for one in strange for flag in one.weak]
        print(f"| {corpus} | {' | '.join(cells)} | {_share(own.weak)}, {_share(weak)} |")
        own_best += own.best
        strange_best += [value for one in strange for value in one.best]
        own_weak += own.weak
        strange_weak += weak
    print(
        f"\nall: AUC {area(own_best, strange_best):.4f}, weak {_share(own_weak)} of own and "
        f"{_share(strange_weak)} of strange questions; median relevance "
        f"{np.median(own_best):.2f} and {np.median(strange_best):.2f}"
    )


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags) / len(flags):.1%}"


class Row(NamedTuple):
    cosine: float
    words: float
    is_relevant: bool
    weight_of: str
    """Rows of one kind have the same weight together as those of another."""


async def rows_of(
    data: Path, embedder: str, corpus: RetrievalSet, asked: RetrievalSet
) -> list[Row]:
    """The figures of each hit that is fitted."""
    runtime = build_runtime(load_settings({"data": str(data), "embedder": embedder}, {}, None))
    rows: list[Row] = []
    try:
        for name, text in asked.queries.items():
            query = checked_query(text)
            meant = await meaning_of(runtime.query_vectors, text, query)
            search = partial(
                search_documents, query=query, where=NO_FILTER, meaning=meant.meaning, limit=_HITS
            )
            hits = await runtime.store.read(Tenant(), search)
            relevant = corpus.relevant[name] if asked is corpus else {}
            for place, hit in enumerate(hits.hits):
                is_relevant = hit.chunks[0].document_id in relevant
                kind = _kind(corpus, asked, place, is_relevant)
                _, cosine, words = hit.relevance
                if kind and cosine is not None and words is not None:
                    rows.append(Row(cosine, words, is_relevant, kind))
    finally:
        runtime.close()
    return rows


def _kind(corpus: RetrievalSet, asked: RetrievalSet, place: int, is_relevant: bool) -> str:
    if asked is not corpus:
        return "strange" if place < _STRANGE_HITS else ""
    if is_relevant:
        return "relevant"
    is_hard = place >= _HARD_FROM and corpus.name not in _SPARSE_JUDGEMENTS
    return "hard" if is_hard else ""


def fitted(rows: Sequence[Row], columns: Sequence[int]) -> list[float]:
    """Weights of the columns, then the base, of the logistic curve; by Newton's method."""
    counts = {kind: sum(row.weight_of == kind for row in rows) for kind in _WEIGHTS}
    weights = np.array([_WEIGHTS[row.weight_of] / counts[row.weight_of] for row in rows])
    figures = np.array([[row[column] for column in columns] + [1.0] for row in rows])
    wanted = np.array([row.is_relevant for row in rows], np.float64)
    curve = np.zeros(figures.shape[1])
    for _ in range(50):
        chances = 1 / (1 + np.exp(-figures @ curve))
        slope = figures.T @ (weights * (chances - wanted))
        bend = (figures * (weights * chances * (1 - chances))[:, None]).T @ figures
        curve -= np.linalg.solve(bend + 1e-9 * np.eye(len(curve)), slope)
    return [round(float(value), 2) for value in curve]


_WEIGHTS = {"relevant": 1.0, "strange": 1.0 - _HARD_WEIGHT, "hard": _HARD_WEIGHT}


def fit(sets: Sequence[RetrievalSet], embedder: str) -> None:
    rows: list[Row] = []
    for corpus in sets:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            with zibaldone(data, embedder=embedder) as server:
                load(f"http://127.0.0.1:{server.port}", corpus, "")
            for asked in sets:
                rows += asyncio.run(rows_of(data, embedder, corpus, asked))
    for name, columns in {"both": (0, 1), "cosine alone": (0,), "words alone": (1,)}.items():
        print(name, fitted(rows, columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="cranfield,xquad_en,chunkeval,cosqa")
    parser.add_argument("--queries", type=int, default=300, help="only the first N of each set")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--leg", choices=("both", "vector"), default="both")
    parser.add_argument("--fit", action="store_true", help="fit the curves anew")
    options = parser.parse_args()
    sets = [read_set(options.data / name, options.queries) for name in options.sets.split(",")]
    if options.fit:
        fit(sets, options.embedder)
        return
    _print({found.name: measure(found, sets, options.leg, options.embedder) for found in sets})


if __name__ == "__main__":
    main()

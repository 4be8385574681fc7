"""How good the searches are in small stores, where every word is rare.

    python -m benchmarks.small_stores --data DIR [--sets xquad_en,cosqa] [--stores 40]

Of each set (DIR is as for `benchmarks.quality`) many small stores are drawn at random: 5, 10, 20,
50 and 200 documents, a part of which answers questions of the set. Each store is asked what it can
answer. nDCG@10 and the share of right first hits of search_knowledge, of keyword search alone and
of vector search alone, in this process, by the built-in model.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.quality import RetrievalSet, ndcg, read_set
from zibaldone.access.principal import LOCAL
from zibaldone.settings import load as load_settings
from zibaldone.tools import built_in
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime
from zibaldone.wiring.runtime import build_runtime

SIZES = (5, 10, 20, 50, 200)
_TOOLS = {tool.name: tool for tool in built_in.TOOLS}
_QUESTIONS_MIN = 8
_HITS = 10
_CHUNKS = 50
_TRIES_MAX = 20
_EMBED_SECONDS_MAX = 10.0
_SEED = 11

Found = tuple[float, float]
"""nDCG@10, and 1 if the first hit is right."""


def drawn(whole: RetrievalSet, size: int, chance: random.Random) -> RetrievalSet:
    """A store of so many documents, and the questions that it can answer."""
    kept: dict[str, None] = {}
    for name in chance.sample(sorted(whole.queries), min(len(whole.queries), max(2, size // 3))):
        right = sorted(whole.relevant[name].keys() & whole.documents.keys())
        room = size * 2 // 3 + 1 - len(kept)
        kept |= dict.fromkeys(chance.sample(right, min(2, len(right)))[: max(0, room)])
    others = [name for name in whole.documents if name not in kept]
    kept |= dict.fromkeys(chance.sample(others, min(len(others), max(0, size - len(kept)))))
    relevant = {
        name: {one: grade for one, grade in whole.relevant[name].items() if one in kept}
        for name in whole.queries
    }
    answered = sorted(name for name, right in relevant.items() if right)
    asked = chance.sample(answered, min(len(answered), max(_QUESTIONS_MIN, size // 2)))
    return RetrievalSet(
        whole.name,
        {name: whole.documents[name] for name in kept},
        {name: whole.queries[name] for name in asked},
        relevant,
    )


async def measure(small: RetrievalSet, embedder: str) -> dict[str, list[Found]]:
    """What each way of searching finds in one store."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"data": str(Path(folder) / "data"), "embedder": embedder}
        runtime = build_runtime(load_settings(given, {}, None))
        try:
            await _fill(runtime, small)
            found: dict[str, list[Found]] = defaultdict(list)
            for name, question in small.queries.items():
                for way, ranked in (await _ranked(runtime, question)).items():
                    right = small.relevant[name]
                    found[way].append((ndcg(ranked, right), float(ranked[:1][0] in right)))
            return found
        finally:
            runtime.close()


async def _fill(runtime: Runtime, small: RetrievalSet) -> None:
    for name, (title, text) in small.documents.items():
        given = {"path": name, "title": title[:900], "content": text or title}
        await _call(runtime, "upload_document", {**given, "mime": "text/plain"})
    assert runtime.index is not None, "no embedding model is installed"
    while (await runtime.index.drain_once()).documents:
        pass


async def _ranked(runtime: Runtime, question: str) -> dict[str, list[str]]:
    await _embed(runtime, question)
    knowledge = {"query": question, "limit": _HITS}
    hits = (await _call(runtime, "search_knowledge", knowledge))["results"]
    words = await _call(runtime, "rag.search_fts", {"query": question, "k": _CHUNKS})
    near = await _call(runtime, "rag.search_vector", {"query_text": question, "k": _CHUNKS})
    ways = {
        "search_knowledge": [hit["document_id"] for hit in hits],
        "keywords alone": [hit["doc_id"] for hit in words["results"]],
        "vectors alone": [hit["doc_id"] for hit in near["results"]],
    }
    return {way: list(dict.fromkeys(ids)) or [""] for way, ids in ways.items()}


async def _call(runtime: Runtime, tool: str, arguments: dict[str, Any]) -> Any:
    answer: Any = await call_tool(_TOOLS[tool], Call(runtime, LOCAL), arguments)
    return answer


async def _embed(runtime: Runtime, question: str) -> None:
    """Its vector is kept: the searches after it do not wait for a model on a busy machine."""
    for _ in range(_TRIES_MAX):
        if (await runtime.query_vectors.of(question, _EMBED_SECONDS_MAX)).vector is not None:
            return
    raise RuntimeError("the model does not answer")


def _mean(found: list[Found]) -> str:
    gains, firsts = (sum(column) / len(found) for column in zip(*found, strict=True))
    return f"{gains:.3f} ({firsts:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="cranfield,chunkeval,xquad_en,xquad_de,cosqa")
    parser.add_argument("--stores", type=int, default=40, help="of 5 documents; fewer of more")
    parser.add_argument("--embedder", default="minilm")
    options = parser.parse_args()
    print("| nDCG@10 (first hits) | " + " | ".join(f"{size} documents" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for set_name in options.sets.split(","):
        whole = read_set(options.data / set_name, None)
        chance = random.Random(_SEED)
        rows: dict[str, list[str]] = defaultdict(list)
        for size in SIZES:
            found: dict[str, list[Found]] = defaultdict(list)
            for _ in range(max(1, round(options.stores * (SIZES[0] / size) ** 0.6))):
                small = drawn(whole, size, chance)
                for way, of_store in asyncio.run(measure(small, options.embedder)).items():
                    found[way] += of_store
            for way, of_size in found.items():
                rows[way].append(_mean(of_size))
        for way, cells in rows.items():
            print(f"| {set_name}: {way} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

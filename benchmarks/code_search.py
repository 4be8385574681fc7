"""How well code is found by a question, beside plain BM25, plain vectors and plain fusion.

    python -m benchmarks.code_search [--trees starlette,httpx] [--data DIR] [--vectors FILE]
    python -m benchmarks.code_search --tree FOLDER --questions FILE.jsonl

Questions → files, nDCG@10, the mean of a tree's questions. The trees are packages that are
installed here and parts of the standard library, with the questions of `code_questions.toml`. With
`--data`, a folder that holds the set `cosqa` in BEIR layout, question → Python function. With
`--tree`, any folder: a line of the questions is {"question": …, "files": [paths below FOLDER]}.

Ours is the index of one call (`pack/overflow.py`) through its public surface, by words alone and
after all vectors were made. The plain ways see the same files and the same chunks:

    BM25      FTS5 with its porter tokenizer over whole files, stop words dropped
    vector    the best cosine of a file's chunks
    fusion    both, scaled to 0…1 and added

`--vectors` keeps vectors between runs: embedding 25 000 chunks takes a while.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib.util
import json
import sysconfig
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.quality import PlainBm25, RetrievalSet, ndcg, read_set
from zibaldone.embed.open import EmbedderSettings, open_embedder
from zibaldone.embed.port import Embedder, Vectors
from zibaldone.pack.overflow import ephemeral_index
from zibaldone.pack.vector_cache import VectorCache
from zibaldone.text.chunk import chunk_document

_QUESTIONS = Path(__file__).with_name("code_questions.toml")
_SUFFIXES = {".py", ".pyi", ".md", ".txt", ".rst", ".js", ".ts", ".tsx", ".go", ".rs", ".java"}
_SUFFIXES |= {".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".kt", ".swift", ".scala"}
_SUFFIXES |= {".sh", ".sql", ".lua", ".ex", ".exs", ".toml", ".yaml", ".yml", ".json", ".zig"}
_SUFFIXES |= {".jsx", ".mjs", ".vue", ".html", ".css"}
_FILE_BYTES_MAX = 2 << 20
_K = 10
_EMBED_BATCH = 256
_ROUNDED = 3


class Remembered:
    """An embedder that embeds a text once, over all runs if it has a file."""

    def __init__(self, inner: Embedder, file: Path | None) -> None:
        self._inner, self._file = inner, file
        self.identity, self.name, self.dimensions = inner.identity, inner.name, inner.dimensions
        self.similarity_min = inner.similarity_min
        self._known: dict[bytes, Vectors] = {}
        if file is not None and file.exists():
            with np.load(file) as stored:
                keys = [bytes(key) for key in stored["keys"]]
                self._known = dict(zip(keys, stored["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [_key(text) for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._known
        }
        made = list(missing.items())
        for start in range(0, len(made), _EMBED_BATCH):
            part = made[start : start + _EMBED_BATCH]
            vectors = self._inner.embed([text for _, text in part])
            for (key, _), vector in zip(part, vectors, strict=True):
                self._known[key] = vector.astype(np.float16)
        if not keys:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([self._known[key] for key in keys]).astype(np.float32)

    def language_trust(self, text: str) -> float:
        return self._inner.language_trust(text)

    def close(self) -> None:
        self._inner.close()
        if self._file is not None:
            keys = np.array([list(key) for key in self._known], np.uint8)
            np.savez(self._file, keys=keys, vectors=np.stack(list(self._known.values())))


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).digest()


@dataclass(frozen=True, slots=True)
class File:
    path: str
    load: Callable[[], str]


def read_tree(
    name: str, root: Path, parts: Sequence[str], asked: Sequence[Sequence[str]]
) -> RetrievalSet:
    documents = {
        file.relative_to(root).as_posix(): ("", file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted({*_files(root, parts)})
    }
    queries = {f"{name}-{number}": question for number, (question, *_) in enumerate(asked)}
    relevant = {
        f"{name}-{number}": dict.fromkeys(files, 1) for number, (_, *files) in enumerate(asked)
    }
    unknown = {path for files in relevant.values() for path in files} - documents.keys()
    if unknown:
        raise SystemExit(f"{name} has no {', '.join(sorted(unknown))}")
    return RetrievalSet(name, documents, queries, relevant)


def _files(root: Path, parts: Sequence[str]) -> Iterator[Path]:
    for part in parts or (".",):
        start = root / part
        for file in (start,) if start.is_file() else start.rglob("*"):
            is_text = file.suffix in _SUFFIXES and ".git" not in file.parts and file.is_file()
            if is_text and file.stat().st_size <= _FILE_BYTES_MAX:
                yield file


def installed_trees(names: Sequence[str]) -> Iterator[RetrievalSet]:
    with _QUESTIONS.open("rb") as file:
        trees = tomllib.load(file)
    for name, tree in trees.items():
        if not names or name in names:
            root = _root(tree["package"])
            yield read_tree(name, root, tree.get("parts", ()), tree["questions"])


def _root(package: str) -> Path:
    if package == "python":
        return Path(sysconfig.get_paths()["stdlib"])
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not installed")
    return Path(found.origin).parent


class Plain:
    """Chunks ranked without any rule for code."""

    def __init__(self, found: RetrievalSet, embedder: Embedder) -> None:
        self._embedder = embedder
        self._paths = list(found.documents)
        self._places = {path: place for place, path in enumerate(self._paths)}
        chunks = [
            (number, chunk.text)
            for number, (path, (_, text)) in enumerate(found.documents.items())
            for chunk in chunk_document(text, _mime(path))
        ]
        self._of = np.array([number for number, _ in chunks])
        self._vectors = embedder.embed([text for _, text in chunks])
        self._bm25 = PlainBm25(found)

    def bm25(self, question: str) -> list[str]:
        return self._bm25(question)

    def cosines(self, question: str) -> Vectors:
        best = np.full(len(self._paths), -1.0, np.float32)
        np.maximum.at(best, self._of, self._vectors @ self._embedder.embed([question])[0])
        return best

    def vector(self, question: str) -> list[str]:
        return self._ranked(self.cosines(question))

    def fusion(self, question: str) -> list[str]:
        words = np.zeros(len(self._paths), np.float32)
        for path, score in self._bm25.scores(question).items():
            words[self._places[path]] = score
        return self._ranked(_scaled(words) + _scaled(self.cosines(question)))

    def _ranked(self, scores: Vectors) -> list[str]:
        return [self._paths[place] for place in np.argsort(-scores, kind="stable")[:_K]]


def _scaled(values: Vectors) -> Vectors:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else values * 0


def _mime(path: str) -> str:
    return "text/markdown" if path.endswith(".md") else "text/x-code"


async def ours(found: RetrievalSet, embedder: Embedder | None) -> dict[str, list[str]]:
    files = [File(path, lambda text=text: text) for path, (_, text) in found.documents.items()]  # type: ignore[misc]
    async with ephemeral_index(
        files, embedder=embedder, cache=VectorCache(), share="benchmark"
    ) as index:
        while not index.is_filled:  # noqa: ASYNC110 (threads set no event of the loop)
            await asyncio.sleep(0.05)
        return {
            name: [hit.path for hit in await index.search(question, _K)]
            for name, question in found.queries.items()
        }


def measure(found: RetrievalSet, embedder: Embedder) -> dict[str, float]:
    plain = Plain(found, embedder)
    ways: dict[str, dict[str, list[str]]] = {
        "BM25": {name: plain.bm25(text) for name, text in found.queries.items()},
        "vector": {name: plain.vector(text) for name, text in found.queries.items()},
        "fusion": {name: plain.fusion(text) for name, text in found.queries.items()},
        "ours, words": asyncio.run(ours(found, None)),
        "ours": asyncio.run(ours(found, embedder)),
    }
    return {
        way: sum(ndcg(ranked[name], found.relevant[name]) for name in ranked) / len(ranked)
        for way, ranked in ways.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", default="", help="names, with commas; all unless given")
    parser.add_argument("--data", type=Path, help="folder of the set cosqa")
    parser.add_argument("--tree", type=Path, help="a folder of files instead")
    parser.add_argument("--questions", type=Path, help="the questions about it")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--vectors", type=Path, help="file that keeps vectors between runs")
    options = parser.parse_args()
    inner = open_embedder(EmbedderSettings(kind=options.embedder))
    if inner is None:
        parser.error("there is no embedding model; see --embedder")
    sets: list[RetrievalSet] = []
    if options.tree:
        rows = map(json.loads, options.questions.read_text(encoding="utf-8").splitlines())
        asked = [[row["question"], *row["files"]] for row in rows]
        sets.append(read_tree(options.tree.name, options.tree, (), asked))
    elif not (options.data and options.trees == "none"):
        sets += installed_trees([name for name in options.trees.split(",") if name])
    if options.data:
        sets.append(read_set(options.data / "cosqa", None))
    embedder = Remembered(inner, options.vectors)
    try:
        _report(sets, embedder)
    finally:
        embedder.close()


def _report(sets: Sequence[RetrievalSet], embedder: Embedder) -> None:
    results: dict[str, dict[str, float]] = {}
    for found in sets:
        started_s = time.perf_counter()
        results[found.name] = measure(found, embedder)
        counts = f"{len(found.documents)} files, {len(found.queries)} questions"
        print(f"{found.name}: {counts}, {time.perf_counter() - started_s:.0f} s", flush=True)
    ways = list(next(iter(results.values())))
    print("\n| nDCG@10 | files | questions | " + " | ".join(ways) + " |")
    print("|---" * (len(ways) + 3) + "|")
    for found in sets:
        cells = [f"{results[found.name][way]:.{_ROUNDED}f}" for way in ways]
        counts = f"{len(found.documents)} | {len(found.queries)}"
        print(f"| {found.name} | {counts} | " + " | ".join(cells) + " |")
    trees = [found.name for found in sets if found.name != "cosqa"]
    if len(trees) > 1:
        means = [sum(results[name][way] for name in trees) / len(trees) for way in ways]
        print(
            "| mean of the trees | | | "
            + " | ".join(f"{mean:.{_ROUNDED}f}" for mean in means)
            + " |"
        )


if __name__ == "__main__":
    main()

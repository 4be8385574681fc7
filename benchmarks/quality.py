"""How good the searches are, through a running server, beside plain BM25 on the same texts.

    python -m benchmarks.quality --data DIR [--sets cranfield,chunkeval] [--embedder fast]

DIR holds folders in BEIR layout: corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and
qrels.tsv. nDCG@10 and recall@50 (50 is the most a rag tool returns). `--quoted 1` puts the longest
word of each question into quotation marks, `--quoted 2` the longest two words that stand side by
side: what a quotation that says nothing costs.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import httpx2

from benchmarks.servers.process import zibaldone
from zibaldone.text.words import STOP_WORDS

Ranking = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")
_QUOTABLE = re.compile(r"\w[\w'-]*\w")
_K = 50
_READY_SECONDS_MAX = 3_600
_TRIES_MAX = 20
_SLOW = "model is slow"


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    name: str
    documents: dict[str, tuple[str, str]]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def read_set(folder: Path, queries_max: int | None) -> RetrievalSet:
    documents = {
        row["_id"]: (row.get("title") or "", row["text"]) for row in _rows(folder / "corpus.jsonl")
    }
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        parts = line.split("\t")
        if len(parts) >= 3 and parts[-1].lstrip("-").isdigit() and int(parts[-1]) > 0:
            relevant.setdefault(parts[0], {})[parts[-2]] = int(parts[-1])
    queries = {
        row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl") if row["_id"] in relevant
    }
    kept = dict(list(queries.items())[:queries_max])
    return RetrievalSet(folder.name, documents, kept, relevant)


def with_quotations(found: RetrievalSet, words_count: int) -> RetrievalSet:
    queries = {name: quoted(text, words_count) for name, text in found.queries.items()}
    return replace(found, queries=queries)


def quoted(question: str, words_count: int) -> str:
    """The question with so many of its words in quotation marks: none, one or two."""
    question = question.replace('"', " ")
    words = [word for word in _QUOTABLE.finditer(question) if word[0].lower() not in STOP_WORDS]
    pairs = [
        (first, second)
        for first, second in pairwise(words)
        if words_count == 2 and question[first.end() : second.start()] == " "
    ]
    spans = [(first.start(), second.end()) for first, second in pairs]
    if not spans and words_count:
        spans = [word.span() for word in words]
    if not spans:
        return question
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return f'{question[:start]}"{question[start:end]}"{question[end:]}'


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def ndcg(ranked: Sequence[str], relevant: dict[str, int], k: int = 10) -> float:
    gained = sum(
        relevant.get(name, 0) / math.log2(rank + 1) for rank, name in enumerate(ranked[:k], 1)
    )
    ideal = sum(
        gain / math.log2(rank + 1)
        for rank, gain in enumerate(sorted(relevant.values(), reverse=True)[:k], 1)
    )
    return gained / ideal if ideal else 0.0


def recall(ranked: Sequence[str], relevant: dict[str, int]) -> float:
    return len(set(ranked[:_K]) & relevant.keys()) / len(relevant)


class PlainBm25:
    """FTS5 with its porter tokenizer over whole documents, stop words dropped: the reference."""

    def __init__(self, found: RetrievalSet) -> None:
        self._ids = list(found.documents)
        self._db = apsw.Connection(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize='porter unicode61')")
        self._db.executemany(
            "INSERT INTO t(rowid, body) VALUES (?, ?)",
            [
                (row, f"{title}\n{text}")
                for row, (title, text) in enumerate(found.documents.values())
            ],
        )

    def __call__(self, query: str) -> list[str]:
        return list(self.scores(query, _K))

    def scores(self, query: str, limit: int = -1) -> dict[str, float]:
        """The score of documents that have any of the words, best first."""
        words = _WORD.findall(query.lower())
        words = [word for word in words if word not in STOP_WORDS] or words
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        if not match:
            return {}
        rows = self._db.execute(
            "SELECT rowid, -rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (match, limit)
        )
        return {self._ids[row]: score for row, score in rows}


class Ours:
    """The tools of a running server, over MCP."""

    def __init__(self, url: str, prefix: str) -> None:
        self._client = httpx2.Client(
            base_url=url, timeout=60, headers={"accept": "application/json"}
        )
        self._prefix = prefix

    def call(self, path: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Asks again where the model was too slow, on a machine that is busy with other work."""
        for _ in range(_TRIES_MAX):
            answer = self._call(path, tool, arguments)
            said = {name: value for name, value in answer.items() if name != "results"}
            if _SLOW not in json.dumps(said):
                break
        return answer

    def _call(self, path: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.post(
            path,
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            },
        ).json()
        found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
        return found

    def rag(self, tool: str, query_name: str, **more: Any) -> Ranking:
        def ranked(query: str) -> list[str]:
            found = self.call("/mcp-rag", tool, {query_name: query, "k": _K, **more})
            return self._documents(hit["doc_id"] for hit in found["results"])

        return ranked

    def knowledge(self, query: str) -> list[str]:
        found = self.call("/mcp", "search_knowledge", {"query": query, "limit": _K})
        return self._documents(hit["document_id"] for hit in found["results"])

    def _documents(self, ids: Iterator[str]) -> list[str]:
        return list(dict.fromkeys(name.removeprefix(self._prefix) for name in ids))


def load(
    url: str, found: RetrievalSet, prefix: str, mime: Callable[[str], str] = lambda _: "text/plain"
) -> float:
    """Put the documents in and wait for their vectors; passages embedded a second."""
    started_s = time.perf_counter()
    with httpx2.Client(base_url=url, timeout=60) as client:

        def put(item: tuple[str, tuple[str, str]]) -> None:
            name, (title, text) = item
            body = {"path": prefix + name, "title": title[:900], "content": text or title}
            answer = client.post("/documents", json={**body, "mime": mime(name)})
            if answer.status_code != 201:
                raise RuntimeError(answer.text)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(put, found.documents.items()))
        while True:
            index = client.get("/health").json()["services"]["index"]
            # A busy server may have no figures at the moment.
            if index.get("pending") == 0 or index["status"] == "off":
                return time.perf_counter() - started_s
            if time.perf_counter() - started_s > _READY_SECONDS_MAX:
                raise RuntimeError("the vectors were not ready in time")
            time.sleep(0.5)


def measure(found: RetrievalSet, embedder: str) -> dict[str, tuple[float, float]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        zibaldone(Path(folder) / "data", embedder=embedder) as server,
    ):
        prefix, url = f"{found.name}/", f"http://127.0.0.1:{server.port}"
        took_s = load(url, found, prefix)
        print(f"{found.name}: {len(found.documents)} documents ready in {took_s:.0f} s", flush=True)
        ours = Ours(url, prefix)
        ways: dict[str, Ranking] = {
            "BM25 (plain FTS5)": PlainBm25(found),
            "rag.search_fts": ours.rag("rag.search_fts", "query"),
            "rag.search_vector": ours.rag("rag.search_vector", "query_text"),
            "hybrid fuse": ours.rag("rag.search_hybrid", "query", mode="fuse"),
            "hybrid convex": ours.rag("rag.search_hybrid", "query", mode="convex"),
            "search_knowledge": ours.knowledge,
        }
        return {name: _scored(found, way) for name, way in ways.items()}


def _scored(found: RetrievalSet, way: Ranking) -> tuple[float, float]:
    gains, recalls = 0.0, 0.0
    for name, query in found.queries.items():
        ranked = way(query)
        gains += ndcg(ranked, found.relevant[name])
        recalls += recall(ranked, found.relevant[name])
    return gains / len(found.queries), recalls / len(found.queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="cranfield,chunkeval,xquad_en,xquad_de,xquad_vi")
    parser.add_argument("--queries", type=int, help="only the first N queries of each set")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--quoted", type=int, choices=(1, 2), help="words to quote in each query")
    options = parser.parse_args()
    sets = [read_set(options.data / name, options.queries) for name in options.sets.split(",")]
    if options.quoted:
        sets = [with_quotations(found, options.quoted) for found in sets]
    results = {found.name: measure(found, options.embedder) for found in sets}
    print("\n| nDCG@10 (recall@50) | " + " | ".join(results) + " | mean |")
    print("|---" * (len(results) + 2) + "|")
    for way in next(iter(results.values())):
        cells = [results[name][way] for name in results]
        mean = sum(gain for gain, _ in cells) / len(cells)
        shown = " | ".join(f"{gain:.3f} ({found:.2f})" for gain, found in cells)
        print(f"| {way} | {shown} | {mean:.3f} |")
    _print_ratios(results)


def _print_ratios(results: dict[str, dict[str, tuple[float, float]]]) -> None:
    """What the default search gains over the reference, on each set and on the mean."""
    ours = [found["search_knowledge"][0] for found in results.values()]
    plain = [found["BM25 (plain FTS5)"][0] for found in results.values()]
    ratios = " | ".join(f"{a / b:.3f}" for a, b in zip(ours, plain, strict=True))
    print(f"| search_knowledge / BM25 | {ratios} | {sum(ours) / sum(plain):.3f} |")


if __name__ == "__main__":
    main()

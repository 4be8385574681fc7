"""Is what was said found again? Evidence recall through /mcp-memory, beside plain searches.

    python -m benchmarks.memory --data DIR [--qrels qrels.tsv qrels_audited.tsv] [--every 4]

DIR is a set of conversations in BEIR layout: corpus.jsonl (_id, text, metadata: conversation,
session, speaker, date), queries.jsonl (metadata: conversation, category) and qrels. Each turn is an
episode (`add_memory`, source message) of the group of its conversation; a question is asked of its
conversation only. Recall@5 and @10 of the turns that hold the answer, and @10 of their sessions:

    BM25              FTS5 with its porter stemmer over the turns of the conversation
    search_knowledge  the hybrid search for documents, on the same server
    recall            the memory profile

No language model takes part. `--every N` asks each N-th question only.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.quality import Ours, PlainBm25, RetrievalSet
from benchmarks.servers.process import zibaldone

_READY_SECONDS_MAX = 3_600
_TOKENS = 20_000
_SHOWN = 50

Ranking = Callable[[str, str], list[str]]
"""Conversation and question → turns, best first."""


@dataclass(frozen=True, slots=True)
class Turn:
    turn_id: str
    conversation: str
    session: str
    text: str
    at: str
    is_message: bool


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    conversation: str
    category: str
    evidence: frozenset[str]


def read_turns(folder: Path) -> list[Turn]:
    turns = []
    position: dict[tuple[str, str], int] = defaultdict(int)
    for row in _rows(folder / "corpus.jsonl"):
        known = row.get("metadata", {})
        conversation, session = str(known.get("conversation", "all")), str(known.get("session", ""))
        date = str(known.get("date", ""))
        # Within a session only the order is known: a second for each turn.
        at = _moment(date) + timedelta(seconds=position[conversation, session])
        position[conversation, session] += 1
        turns.append(
            Turn(
                row["_id"],
                conversation,
                session,
                row["text"].removeprefix(f"[{date}] "),
                at.isoformat(),
                bool(known.get("speaker")),
            )
        )
    return turns


def read_questions(folder: Path, qrels: str, every: int) -> list[Asked]:
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in (folder / qrels).read_text(encoding="utf-8").splitlines()[1:]:
        question, turn, grade = line.split("\t")
        if int(grade) > 0:
            relevant[question].add(turn)
    asked = [
        Asked(
            row["text"],
            str(row.get("metadata", {}).get("conversation", "all")),
            str(row.get("metadata", {}).get("category", "all")),
            frozenset(relevant[row["_id"]]),
        )
        for row in _rows(folder / "queries.jsonl")
        if relevant.get(row["_id"])
    ]
    return asked[::every]


def _moment(date: str) -> datetime:
    for form in ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%d %B, %Y"):
        try:
            return datetime.strptime(date, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        moment = datetime(2000, 1, 1, tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def load(url: str, turns: Sequence[Turn]) -> tuple[float, float]:
    """Seconds until all is stored, and until all has its vector."""
    started_s = time.perf_counter()
    ours = Ours(url, "")

    def add(turn: Turn) -> None:
        answer = ours.call(
            "/mcp-memory",
            "add_memory",
            {
                "name": "Message",
                "episode_body": turn.text,
                "group_id": turn.conversation,
                "source": "message" if turn.is_message else "text",
                "uuid": turn.turn_id,
                "reference_time": turn.at,
            },
        )
        if answer.get("status") != "created":
            raise RuntimeError(str(answer))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, turns))
    stored_s = time.perf_counter() - started_s
    with httpx2.Client(base_url=url, timeout=60) as client:
        while client.get("/health").json()["services"]["index"].get("pending", 0):
            if time.perf_counter() - started_s > _READY_SECONDS_MAX:
                raise RuntimeError("the vectors were not ready in time")
            time.sleep(1)
    return stored_s, time.perf_counter() - started_s


def bm25(turns: Sequence[Turn]) -> Ranking:
    by_conversation: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for turn in turns:
        by_conversation[turn.conversation][turn.turn_id] = ("", turn.text)
    indexes = {
        name: PlainBm25(RetrievalSet(name, documents, {}, {}))
        for name, documents in by_conversation.items()
    }
    return lambda conversation, question: indexes[conversation](question)


def knowledge(ours: Ours) -> Ranking:
    def ranked(conversation: str, question: str) -> list[str]:
        prefix = f"memory/{conversation}/"
        given = {"query": question, "limit": _SHOWN, "prefix": prefix}
        found = ours.call("/mcp", "search_knowledge", given)
        return [hit["document_id"].removeprefix(prefix) for hit in found["results"]]

    return ranked


def recalled(ours: Ours, latencies_s: list[float]) -> Ranking:
    def ranked(conversation: str, question: str) -> list[str]:
        started_s = time.perf_counter()
        given = {"query": question, "group": conversation, "budget_tokens": _TOKENS}
        lines = ours.call("/mcp-memory", "recall", given)["lines"]
        latencies_s.append(time.perf_counter() - started_s)
        return [line["uuid"] for line in lines]

    return ranked


def measure(way: Ranking, asked: Sequence[Asked], session_of: dict[str, str]) -> dict[str, Any]:
    """Category → recall@5, @10 of turns and @10 of sessions, and how many questions."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for question in asked:
        turns = way(question.conversation, question.text)
        sessions = list(dict.fromkeys(session_of[turn] for turn in turns))[:10]
        wanted = {session_of[turn] for turn in question.evidence if turn in session_of}
        figures = (
            len(question.evidence & set(turns[:5])) / len(question.evidence),
            len(question.evidence & set(turns[:10])) / len(question.evidence),
            len(wanted & set(sessions)) / len(wanted) if wanted else 0.0,
            1.0,
        )
        for category in (question.category, "all"):
            sums[category] = [a + b for a, b in zip(sums[category], figures, strict=True)]
    return {
        name: [value / total[3] for value in total[:3]] + [total[3]] for name, total in sums.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--qrels", nargs="+", default=["qrels.tsv"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--embedder", default="auto")
    options = parser.parse_args()
    turns = read_turns(options.data)
    asked = {name: read_questions(options.data, name, options.every) for name in options.qrels}
    session_of = {turn.turn_id: f"{turn.conversation}/{turn.session}" for turn in turns}
    with (
        tempfile.TemporaryDirectory() as folder,
        zibaldone(Path(folder) / "data", embedder=options.embedder) as server,
    ):
        url = f"http://127.0.0.1:{server.port}"
        stored_s, ready_s = load(url, turns)
        print(
            f"{len(turns)} episodes stored in {stored_s:.0f} s, with vectors in {ready_s:.0f} s; "
            f"{', '.join(f'{name}: {len(asked[name])} questions' for name in asked)}",
            flush=True,
        )
        ours = Ours(url, "")
        latencies_s: list[float] = []
        ways = {
            "BM25": bm25(turns),
            "search_knowledge": knowledge(ours),
            "recall": recalled(ours, latencies_s),
        }
        head = "| qrels | | kind | questions | turn @5 | turn @10 | session @10 |"
        print(f"{head}\n|---|---|---|---|---|---|---|")
        for name, way in ways.items():
            remembered = functools.cache(way)
            for qrels, questions in asked.items():
                found = measure(remembered, questions, session_of)
                for category in sorted(found, key=lambda one: (one != "all", one)):
                    five, ten, sessions, count = found[category]
                    print(
                        f"| {qrels} | {name} | {category} | {count:.0f} | {five:.3f} | {ten:.3f} | "
                        f"{sessions:.3f} |",
                        flush=True,
                    )
        latencies_s.sort()
        print(f"\nrecall takes {latencies_s[len(latencies_s) // 2] * 1000:.0f} ms (median)")


if __name__ == "__main__":
    main()

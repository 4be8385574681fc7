"""Is the right document the first hit? Questions over documentation that is on every machine.

    python -m benchmarks.first_hit [--embedder fast] [--misses]

The documents are Python's help topics, one for each module of the standard library made of its
docstrings, and the READMEs of installed packages; `first_hit.toml` has the questions. They are put
to search_knowledge of a running server, to keyword search alone, to vector search alone, and to
plain BM25 over whole documents. Rankings were tuned on the questions with even numbers only; the
odd ones are held out. `--misses` lists the questions whose first hit is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import tempfile
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.quality import Ours, PlainBm25, Ranking, RetrievalSet, load
from benchmarks.servers.process import zibaldone

_FILE = Path(__file__).with_suffix(".toml")
_FIRST_FEW = 5


def read_documentation() -> tuple[RetrievalSet, list[str]]:
    """What is installed of the documents, with the questions about it, and what is not."""
    with _FILE.open("rb") as file:
        listed = tomllib.load(file)
    documents = dict(_topics())
    absent: list[str] = []
    for name in listed["modules"]:
        if (module := _module(name)) is None:
            absent.append(f"library/{name}")
        else:
            documents[f"library/{name}"] = _title(module), "\n\n".join(_docstrings(module))
    for name in listed["readmes"]:
        if text := _readme(name):
            documents[f"readmes/{name}"] = name, text
        else:
            absent.append(f"readmes/{name}")
    asked = enumerate(listed["questions"])
    answers = {
        number: (question, [name for name in right if name in documents])
        for number, (question, *right) in asked
    }
    answered = {str(number): answer for number, answer in answers.items() if answer[1]}
    return (
        RetrievalSet(
            "documentation",
            documents,
            {number: question for number, (question, _) in answered.items()},
            {number: dict.fromkeys(right, 1) for number, (_, right) in answered.items()},
        ),
        absent,
    )


def _topics() -> Iterator[tuple[str, tuple[str, str]]]:
    topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    for name, text in sorted(topics.items()):
        title, _, _ = text.strip().partition("\n")
        yield f"topics/{name}", (title, text)


def _module(name: str) -> ModuleType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def _title(module: ModuleType) -> str:
    summary, _, _ = (inspect.getdoc(module) or "").partition("\n")
    return f"{module.__name__}: {summary}" if summary else module.__name__


def _docstrings(module: ModuleType) -> Iterator[str]:
    """The module as Markdown: a heading for each public name, with its docstring below it."""
    name = module.__name__
    yield f"# {name}\n\n{inspect.getdoc(module) or ''}"
    for member_name, member in _public(module):
        yield from _described(f"## {name}.{member_name}", member)
        if inspect.isclass(member):
            for method_name, method in sorted(vars(member).items()):
                if not method_name.startswith("_"):
                    yield from _described(f"### {name}.{member_name}.{method_name}", method)


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names: Sequence[str] = getattr(module, "__all__", None) or [
        name for name in sorted(vars(module)) if not name.startswith("_")
    ]
    for name in names:
        member = getattr(module, name, None)
        if inspect.isclass(member) or inspect.isroutine(member):
            yield name, member


def _described(heading: str, member: object) -> Iterator[str]:
    text = getattr(member, "__doc__", None)
    if isinstance(text, str) and text.strip():
        yield f"{heading}\n\n{inspect.cleandoc(text)}"


def _readme(name: str) -> str:
    try:
        metadata: Any = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    text = metadata.get_payload() or metadata.get("Description") or ""
    return f"{metadata.get('Summary') or ''}\n\n{text}".strip()


def _mime(name: str) -> str:
    return "text/plain" if "topics/" in name else "text/markdown"


def measure(found: RetrievalSet, embedder: str) -> dict[str, dict[str, list[str]]]:
    """What each way of searching finds for each question."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zibaldone(Path(folder) / "data", embedder=embedder) as server,
    ):
        url = f"http://127.0.0.1:{server.port}"
        took_s = load(url, found, "", _mime)
        print(f"{len(found.documents)} documents ready in {took_s:.0f} s", flush=True)
        ours = Ours(url, "")
        ways: dict[str, Ranking] = {
            "BM25, whole documents": PlainBm25(found),
            "keywords alone": ours.rag("rag.search_fts", "query"),
            "vectors alone": ours.rag("rag.search_vector", "query_text"),
            "search_knowledge": ours.knowledge,
        }
        return {
            way: {number: search(question) for number, question in found.queries.items()}
            for way, search in ways.items()
        }


def rank_of(ranked: Sequence[str], right: dict[str, int]) -> float:
    """Of the first right document, from 1."""
    return next((rank for rank, name in enumerate(ranked, 1) if name in right), float("inf"))


def _figures(ranks: Sequence[float]) -> str:
    first = sum(rank == 1 for rank in ranks)
    few = sum(rank <= _FIRST_FEW for rank in ranks)
    return f"{first} | {few} | {sum(1 / rank for rank in ranks) / len(ranks):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    found, absent = read_documentation()
    if absent:
        print(f"{len(absent)} documents are not installed: {', '.join(absent)}")
    print(f"{len(found.queries)} questions")
    rankings = measure(found, options.embedder)
    ranks = {
        way: {number: rank_of(ranked[number], found.relevant[number]) for number in found.queries}
        for way, ranked in rankings.items()
    }
    print("\n| | first hit | in the first 5 | MRR | first hit, even | first hit, odd |")
    print("|---|---|---|---|---|---|")
    for way, of_way in ranks.items():
        halves = [
            sum(rank == 1 for number, rank in of_way.items() if int(number) % 2 == half)
            for half in (0, 1)
        ]
        print(f"| {way} | {_figures(list(of_way.values()))} | {halves[0]} | {halves[1]} |")
    if options.misses:
        _list_misses(found, rankings["search_knowledge"], ranks["search_knowledge"])


def _list_misses(
    found: RetrievalSet, ranked: dict[str, list[str]], ranks: dict[str, float]
) -> None:
    for number, rank in ranks.items():
        if rank > 1:
            first, *_ = ranked[number] or ["nothing"]
            right = ", ".join(found.relevant[number])
            print(f"{number}. {found.queries[number]}: {first}; {right} at {rank:g}")


if __name__ == "__main__":
    main()

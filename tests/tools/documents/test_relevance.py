"""`relevance` compares across questions, and `weak` says when nothing answers one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.mcp import Mcp
from tests.drivers.rag import rag, wait_until_indexed
from tests.drivers.server import Server

DOCS = {
    "json.md": "The json module parses text into dictionaries and lists: json.loads reads a string,"
    " json.load a file. json.dumps writes an object as JSON text; indent makes it readable.",
    "pathlib.md": "Path objects stand for files and folders. Path.glob finds files by a pattern,"
    " Path.read_text returns the content of a file, Path.unlink removes it.",
    "asyncio.md": "An event loop runs coroutines. asyncio.gather waits for several of them at once,"
    " asyncio.timeout cancels what takes too long.",
    "sqlite3.md": "sqlite3.connect opens a database file. Statements take parameters, so that"
    " values are never pasted into SQL. commit ends a transaction.",
    "logging.md": "Loggers form a tree by their names. A handler sends records to a stream or a"
    " file; the level decides which records are written at all.",
    "re.md": "Regular expressions describe sets of strings. re.search looks for the first place"
    " where a pattern matches, re.sub replaces every match.",
    "venv.md": "A virtual environment keeps the packages of one project apart from others."
    " Create it with python -m venv and activate it before installing with pip.",
    "threading.md": "A Lock makes sure that only one thread at a time is inside a section."
    " Threads that wait for each other's locks never end: a deadlock.",
    "datetime.md": "A datetime without a time zone is naive. Use timezone.utc, and zoneinfo for"
    " places where clocks change in summer.",
    "csv.md": "csv.reader splits the lines of a file into fields; csv.DictReader takes the names"
    " of the columns from the first line.",
    "unittest.md": "A test case has methods whose names begin with test. setUp runs before each of"
    " them; mock replaces an object while a test runs.",
    "make.md": "A rule of a makefile has a target, what it depends on, and a recipe: the commands"
    " that bring the target up to date.",
    "socket.md": "A socket is one end of a connection. bind and listen make a server, connect a"
    " client; settimeout bounds how long a call may wait.",
}
ANSWERED = {
    "how do I parse JSON text into a dictionary": "json.md",
    "find files by a pattern": "pathlib.md",
    "wait for several coroutines": "asyncio.md",
    "what is a deadlock of threads": "threading.md",
    "split the lines of a file into columns": "csv.md",
    "virtual environment": "venv.md",
    "logging handler": "logging.md",
}
PARAPHRASED = {"replace text that matches a regex": "re.md"}
STRANGE = (  # the corpus has words of the first and the last
    "recipe for chocolate cake",
    "who won the football world cup",
    "how long do penguins live",
)
NOTE = "nothing found matches the query well"


def serving(folder: Path, environment: dict[str, str]) -> Iterator[Server]:
    with Server(folder / "data", environment=environment) as running:
        for name, body in DOCS.items():
            running.create(name, body)
        if environment["ZIBALDONE_EMBEDDER"] != "none":
            wait_until_indexed(running)
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serving(tmp_path_factory.mktemp("relevance"), {"ZIBALDONE_EMBEDDER": "minilm"})


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serving(tmp_path_factory.mktemp("words"), {"ZIBALDONE_EMBEDDER": "none"})


def knowledge(server: Server, query: str, **more: Any) -> dict[str, Any]:
    return Mcp(server.client).call("search_knowledge", query=query, **more)


def best(answer: dict[str, Any]) -> float:
    return max((hit["relevance"] for hit in answer["results"]), default=0.0)


def of(answer: dict[str, Any], name: str) -> float:
    known = {hit.get("document_id") or hit["doc_id"]: hit["relevance"] for hit in answer["results"]}
    return float(known[name])


def test_a_strange_question_is_weak_and_below_every_right_answer(server: Server) -> None:
    strange = [knowledge(server, question) for question in STRANGE]
    assert all(answer["weak"] is True for answer in strange)
    for answer in strange:
        assert (NOTE in answer.get("note", "")) == bool(answer["results"])
    assert strange[0]["results"], "a weak answer still shows what there is"
    for question, name in {**ANSWERED, **PARAPHRASED}.items():
        answer = knowledge(server, question)
        assert answer["results"][0]["document_id"] == name
        assert "weak" not in answer
        assert NOTE not in answer.get("note", "")
        assert of(answer, name) > 2 * max(map(best, strange)), question


@pytest.mark.parametrize("tool", ["rag.search_fts", "rag.search_vector", "rag.search_hybrid"])
def test_the_rag_tools_tell_it_too(server: Server, tool: str) -> None:
    text = "query_text" if tool == "rag.search_vector" else "query"
    strange = rag(server).call(tool, **{text: STRANGE[0]})
    assert strange["weak"] is True
    assert NOTE in strange["note"]
    for question in ("how do I parse JSON text into a dictionary", "wait for several coroutines"):
        answer = rag(server).call(tool, **{text: question})
        assert of(answer, ANSWERED[question]) > 2 * best(strange)
        assert "weak" not in answer
        assert all(0 <= hit["relevance"] <= 1 for hit in answer["results"])


def test_words_alone_will_do(wordy: Server) -> None:
    strange = [knowledge(wordy, question) for question in STRANGE]
    assert all(answer["weak"] for answer in strange)
    for question, name in ANSWERED.items():
        answer = knowledge(wordy, question)
        assert of(answer, name) > max(map(best, strange))
        assert "weak" not in answer


@pytest.mark.parametrize("query", ['"virtual environment"', "virt*", 'venv +"virtual environment"'])
def test_what_a_query_demands_is_relevant_where_it_is(wordy: Server, query: str) -> None:
    answer = knowledge(wordy, query)
    assert of(answer, "venv.md") > 0.8


def test_a_query_that_asks_for_nothing_is_weak(wordy: Server) -> None:
    answer = knowledge(wordy, "-json")
    assert (answer["results"], answer["weak"]) == ([], True)
    assert "note" not in answer


def test_a_later_page_does_not_say_weak(wordy: Server) -> None:
    page = rag(wordy).call("rag.search_fts", query="json file", offset=40)
    assert page["results"] == []
    assert "weak" not in page


def test_relevance_does_not_depend_on_what_else_is_found(server: Server) -> None:
    question = "how do I parse JSON text into a dictionary"
    alone = knowledge(server, question, prefix="csv")
    among = knowledge(server, question)
    assert [hit["document_id"] for hit in alone["results"]] == ["csv.md"]
    (hit,) = (hit for hit in among["results"] if hit["document_id"] == "csv.md")
    assert alone["results"][0]["score"] > hit["score"]
    assert alone["results"][0]["relevance"] == hit["relevance"]
    assert alone["weak"] is True


def test_the_best_passage_of_a_document_tells_its_relevance(server: Server) -> None:
    tides = "Spring tides come at new and full moon, when sun and moon pull in one line."
    ledger = "The moon was not mentioned in the ledgers of the harbour office. " * 25
    server.create("tides/alone.md", f"## Tides\n\n{tides}")
    server.create("tides/among.md", f"## Ledgers\n\n{ledger}\n\n## Tides\n\n{tides}")
    wait_until_indexed(server)
    answer = knowledge(server, "lunar cycle and the highest water", prefix="tides/")
    assert of(answer, "tides/among.md") == pytest.approx(of(answer, "tides/alone.md"), abs=0.1)
    assert of(answer, "tides/alone.md") > 0.3, "near in meaning, though no word is the same"


def test_over_rest(server: Server) -> None:
    answer = server.client.get("/search", params={"query": STRANGE[0]}).json()
    assert answer["weak"] is True
    assert "relevance" in answer["results"][0]

"""import agent-data: a dump in a file, or the database itself."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.drivers import corpus
from tests.drivers.commands import Commands
from tests.drivers.postgres import PostgresServer
from tests.drivers.server import COMMAND, clean_environment, run_cli

COUNTS = ("created", "updated", "unchanged", "skipped", "failed")


def counts(answer: dict[str, Any]) -> tuple[int, ...]:
    return tuple(answer[name] for name in COUNTS)


def row(document_id: Any, key: str | None = None, **data: Any) -> dict[str, Any]:
    made_key = str(document_id).replace("/", "__") if key is None else key
    return {"key": made_key, "data": {"document_id": document_id, **data}}


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)
    return str(path)


def body_of(one: dict[str, Any]) -> str:
    content = one["data"]["content"]
    body: str = content if isinstance(content, str) else content["body"]
    return body


# ---- the seed's knowledge base ----


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_lines(tmp_path_factory.mktemp("dump") / "kb.jsonl", corpus.agent_data_rows())


@pytest.fixture(scope="module")
def imported(dump: str, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """The whole corpus, imported once."""
    cli = Commands(tmp_path_factory.mktemp("imported") / "data")
    answer = cli.json("import", "agent-data", dump, "--no-vectors")
    assert counts(answer) == (corpus.LISTED, 0, 0, 1, 0)
    return cli


@pytest.mark.requirement("000/AP.01")
def test_the_preflight_report_has_the_seeds_numbers(cli: Commands, dump: str) -> None:
    report = cli.json("import", "agent-data", dump, "--dry-run")["preflight"]
    assert report["rows"] == 5_040
    assert report["live"] == 2_907
    assert report["live_ids_with_underscore"] == 1_184
    assert report["non_numeric_revisions"] == 0
    assert report["key_mismatches"] == 0
    assert report["without_id"] == 1
    assert report["deleted"] == 5_040 - 2_907
    assert abs(report["body_bytes"] - corpus.BODY_BYTES) < corpus.BODY_BYTES / 100
    assert not cli.data.exists()


@pytest.mark.requirement("000/AP.01", "000/AP.02")
def test_the_corpus_is_what_it_says() -> None:
    rows = list(corpus.agent_data_rows())
    alive = [one for one in rows if one["data"].get("deleted_at") is None]
    ids = [one["data"]["document_id"] for one in alive]
    assert (len(rows), len(alive)) == (5_040, 2_907)
    assert sum("_" in document_id for document_id in ids) == 1_184
    assert sum(document_id.startswith("knowledge/") for document_id in ids) == 2_570
    assert all(isinstance(one["data"].get("revision", 0), int) for one in rows)
    assert all(one["key"] == one["data"]["document_id"].replace("/", "__") for one in rows)
    assert len({one["key"] for one in rows}) == len(rows)
    junk = [one for one in rows if not one["data"]["document_id"]]
    assert [(one["key"], len(body_of(one))) for one in junk] == [("", corpus.JUNK_BODY_BYTES)]
    for prefix, probes in corpus.PROBES.items():
        assert {one for one in ids if one.startswith(prefix)} == set(probes)
    assert list(corpus.agent_data_rows()) == rows


@pytest.mark.requirement("T15", "000/D1.02")
def test_the_junk_row_is_in_no_list(imported: Commands) -> None:
    assert imported.ids() == corpus.alive_ids()
    for prefix in ("", "knowledge/", "knowledge_/", "100%", " "):
        listed = imported.ok("ls", prefix, "--all").splitlines()
        assert listed == [one for one in corpus.alive_ids() if one.startswith(prefix)]
        assert "" not in listed


def test_revisions_titles_tags_and_times_are_kept(imported: Commands) -> None:
    expected = {
        one["data"]["document_id"]: one["data"]
        for one in corpus.agent_data_rows()
        if one["data"].get("deleted_at") is None and one["data"]["document_id"]
    }
    items = imported.json("ls", "--all")["items"]
    assert {item["document_id"]: item["revision"] for item in items} == {
        document_id: data["revision"] for document_id, data in expected.items()
    }
    for number, item in enumerate(items):
        data = expected[item["document_id"]]
        assert item["title"] == data["metadata"].get("title", "")
        assert item["tags"] == data["metadata"].get("tags", [])
        assert item["parent_id"] == data["parent_id"]
        if number % 97 == 0:
            document = imported.json("get", item["document_id"])
            assert document["content"] == body_of({"data": data})
            assert document["created_at"][:19] == data["created_at"][:19]
            assert document["updated_at"][:19] == data["updated_at"][:19]
            assert document["metadata"] == {"source": "corpus", "is_human_readable": True}


def test_a_second_import_changes_nothing(imported: Commands, dump: str) -> None:
    before = imported.ok("ls", "--all", "--json")
    answer = imported.json("import", "agent-data", dump, "--no-vectors")
    assert counts(answer) == (0, 0, corpus.LISTED, 1, 0)
    assert answer["problems"] == [
        {"path": "row 2907", "outcome": "skipped", "reason": "no document_id"}
    ]
    assert imported.ok("ls", "--all", "--json") == before
    assert imported("doctor", "--thorough").exit_code == 0


def test_the_database_itself_gives_the_same(
    imported: Commands, cli: Commands, postgres: PostgresServer
) -> None:
    url = postgres.database("kb")
    fill(url, corpus.agent_data_rows())
    answer = cli.json("import", "agent-data", url, "--no-vectors")
    assert counts(answer) == (corpus.LISTED, 0, 0, 1, 0)
    assert answer["preflight"]["rows"] == corpus.ROWS
    assert cli.ok("ls", "--all", "--json") == imported.ok("ls", "--all", "--json")
    sample = "knowledge/test/note_0005.md"
    assert cli.json("get", sample) == imported.json("get", sample)
    assert counts(cli.json("import", "agent-data", url, "--no-vectors")) == (
        0,
        0,
        corpus.LISTED,
        1,
        0,
    )


def fill(url: str, rows: Iterable[dict[str, Any]]) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kb_documents (key text PRIMARY KEY, data jsonb NOT NULL)")
        with cursor.copy("COPY kb_documents FROM STDIN") as copy:
            for one in rows:
                copy.write_row((one["key"], Jsonb(one["data"])))


# ---- what rows may look like ----


@pytest.mark.requirement("000/D1.05")
def test_revisions_of_all_kinds(cli: Commands, tmp_path: Path) -> None:
    rows = [
        row("absent"),
        row("empty", revision=""),
        row("null", revision=None),
        row("number", revision=7),
        row("text", revision="8"),
        row("float", revision=9.0),
        row("word", revision="abc"),
        row("negative", revision=-3),
        row("flag", revision=True),
    ]
    answer = cli.json("import", "agent-data", write_lines(tmp_path / "kb.jsonl", rows))
    assert answer["preflight"]["non_numeric_revisions"] == 3
    assert {item["document_id"]: item["revision"] for item in cli.json("ls")["items"]} == {
        "absent": 0,
        "empty": 0,
        "null": 0,
        "number": 7,
        "text": 8,
        "float": 9,
        "word": 0,
        "negative": 0,
        "flag": 0,
    }
    cli.ok("put", "number", "--if-revision", "7", stdin="next")
    assert cli.json("get", "number")["revision"] == 8


def test_content_of_all_kinds(cli: Commands, tmp_path: Path) -> None:
    rows = [
        row("text", content="plain"),
        row("object", content={"body": "inside", "mime_type": "Text/HTML; charset=utf-8"}),
        row("body", body="beside"),
        row("json", content={"body": {"a": [1]}}),
        row("none"),
        row("odd", content=5, metadata="no object", parent_id=9, created_at="yesterday"),
        row("tags", metadata={"tags": "red, blue,,", "title": None, "empty": None, "n": 0}),
    ]
    cli.ok("import", "agent-data", write_lines(tmp_path / "kb.jsonl", rows))
    found = {one: cli.json("get", one) for one in cli.ids()}
    assert {one: (doc["content"], doc["mime"]) for one, doc in found.items()} == {
        "text": ("plain", "text/markdown"),
        "object": ("inside", "text/html"),
        "body": ("beside", "text/markdown"),
        "json": ('{"a":[1]}', "application/json"),
        "none": ("", "text/markdown"),
        "odd": ("5", "application/json"),
        "tags": ("", "text/markdown"),
    }
    assert found["tags"]["tags"] == ["red", "blue"]
    assert found["tags"]["metadata"] == {"n": 0}
    assert found["none"]["vector_status"] == "skipped"


def test_deleted_documents_come_only_when_asked_for(cli: Commands, tmp_path: Path) -> None:
    rows = [
        row("live", content="x"),
        row("dead", content="was here", revision=4, deleted_at="2026-01-02T03:04:05Z"),
    ]
    dump = write_lines(tmp_path / "kb.jsonl", rows)
    assert counts(cli.json("import", "agent-data", dump, "--no-vectors")) == (1, 0, 0, 0, 0)
    assert cli.error("history", "dead") == (4, "NOT_FOUND")
    answer = cli.json("import", "agent-data", dump, "--with-deleted")
    assert counts(answer) == (1, 0, 1, 0, 0)
    assert cli.ids() == ["live"]
    assert cli.json("search", "here")["results"] == []
    assert cli.json("import", "agent-data", dump, "--with-deleted")["unchanged"] == 2
    assert "brings back its revision 4" in cli("get", "dead").stderr
    cli.ok("restore", "dead")
    assert cli.ok("get", "dead") == "was here"


def test_ids_that_do_not_fit(cli: Commands, tmp_path: Path) -> None:
    rows = [
        row("same", content="first"),
        row("same", content="second"),
        row("/a//b/", content="changed"),
        row("a/b", content="exact"),
        row("c//d", content="changed alone", key="wrong"),
        row("../etc", content="x"),
        row("x" * 1025, content="x"),
        row("nul\u0000", content="x"),
        row("lost", content="bad \u0000 body"),
        row("", content="x"),
        row(None, content="x"),
        row(17, content="x"),
        {"key": "no data"},
        {"key": "list", "data": []},
    ]
    answer = cli.json("import", "agent-data", write_lines(tmp_path / "kb.jsonl", rows))
    report = answer["preflight"]
    assert report["rows"] == len(rows)
    assert report["unreadable"] == 2
    assert report["without_id"] == 3
    assert report["ids_refused"] == 3
    assert report["ids_changed"] == 2
    assert report["ids_colliding"] == 2
    assert report["key_mismatches"] == 1
    assert report["examples"]["ids_changed"][0] == "'/a//b/' becomes 'a/b'"
    assert counts(answer) == (3, 0, 0, 3, 8)
    assert {one: cli.ok("get", one) for one in cli.ids()} == {
        "same": "first",
        "a/b": "exact",
        "c/d": "changed alone",
    }
    assert cli("import", "agent-data", str(tmp_path / "kb.jsonl")).exit_code == 1


def test_texts_over_the_limit_are_told_beforehand(
    cli: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZIBALDONE_DOCUMENT_BODY_BYTES_MAX", "10")
    rows = [row("long", content="é" * 6), row("short", content="é" * 5)]
    result = cli("import", "agent-data", write_lines(tmp_path / "kb.jsonl", rows))
    assert result.exit_code == 1
    assert "           1  texts over the limit\n              - long (12 bytes)" in result.stdout
    assert "failed: long: " in result.stderr
    assert cli.ids() == ["short"]


def test_what_was_changed_here_is_kept_unless_told(cli: Commands, tmp_path: Path) -> None:
    def source(content: str) -> str:
        rows = [row(one, content=content, revision=5) for one in ("a", "b")]
        return write_lines(tmp_path / "kb.jsonl", rows)

    cli.ok("import", "agent-data", source("one"))
    cli.ok("put", "a", "--upsert", stdin="mine")
    assert counts(cli.json("import", "agent-data", source("two"))) == (0, 1, 0, 1, 0)
    assert (cli.ok("get", "a"), cli.ok("get", "b")) == ("mine", "two")
    assert counts(cli.json("import", "agent-data", source("three"), "--skip-existing"))[3] == 2
    assert counts(cli.json("import", "agent-data", source("three"), "--update")) == (0, 2, 0, 0, 0)
    assert [one["revision"] for one in cli.json("history", "a")["revisions"]] == [7, 6, 5]
    assert cli("doctor", "--thorough").exit_code == 0


# ---- forms of a dump, as PostgreSQL writes them ----

AWKWARD = [
    row("plain", content="simple"),
    row("lines", content='say "hi"\nthen\ttab, comma\r\n'),
    row("slashes", content="C:\\new\\table \\\\ \\N \\."),
    row("letters/ñ", content="知識 \U0001f40d \u2028", metadata={"title": 'O\'Brien, "x"'}),
    row("", key="", content="junk"),
]
FORMS = {
    "csv": "COPY kb_documents (key, data) TO STDOUT (FORMAT csv)",
    "csv with header": "COPY kb_documents (data, key) TO STDOUT (FORMAT csv, HEADER)",
    "text": "COPY kb_documents (key, data) TO STDOUT",
    "json lines by copy": "COPY (SELECT row_to_json(t) FROM kb_documents t) TO STDOUT",
}
SELECTS = {
    "json lines": "SELECT row_to_json(t)::text FROM kb_documents t",
    "json array": "SELECT json_agg(t)::text FROM kb_documents t",
    "pretty array": "SELECT jsonb_pretty(jsonb_agg(to_jsonb(t))) FROM kb_documents t",
}


@pytest.fixture(scope="module")
def awkward(postgres: PostgresServer) -> str:
    url = postgres.database("awkward")
    fill(url, AWKWARD)
    return url


@pytest.fixture(scope="module")
def expected(awkward: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cli = Commands(tmp_path_factory.mktemp("expected") / "data")
    return imported_from(cli, awkward)


def imported_from(cli: Commands, source: str) -> dict[str, Any]:
    cli.ok("import", "agent-data", source, "--no-vectors")
    found = {one: cli.json("get", one) for one in cli.ids()}
    return {one: (doc["content"], doc["title"]) for one, doc in found.items()}


def copied(url: str, statement: str) -> bytes:
    with (
        psycopg.connect(url) as connection,
        connection.cursor() as cursor,
        cursor.copy(statement.encode()) as copy,
    ):
        return b"".join(bytes(part) for part in copy)


def selected(url: str, statement: str) -> bytes:
    with psycopg.connect(url) as connection:
        found = connection.execute(statement.encode()).fetchall()
    return b"".join(line.encode() + b"\n" for (line,) in found)


@pytest.mark.parametrize("form", [*FORMS, *SELECTS])
def test_every_form_of_a_dump_says_the_same(
    form: str, awkward: str, expected: dict[str, Any], cli: Commands, tmp_path: Path
) -> None:
    content = copied(awkward, FORMS[form]) if form in FORMS else selected(awkward, SELECTS[form])
    file = tmp_path / "dump"
    file.write_bytes(content)
    assert imported_from(cli, str(file)) == expected
    assert expected == {
        one["data"]["document_id"]: (body_of(one), one["data"].get("metadata", {}).get("title", ""))
        for one in AWKWARD
        if one["key"]
    }


def test_a_dump_that_was_cut_short(cli: Commands, tmp_path: Path) -> None:
    whole = json.dumps([row(one, content="x" * 1000) for one in "abc"])
    file = tmp_path / "kb.json"
    file.write_text(whole[:-700])
    answer = cli.json("import", "agent-data", str(file))
    assert counts(answer) == (2, 0, 0, 0, 1)
    assert "ends badly" in answer["problems"][0]["reason"]
    lines = write_lines(tmp_path / "kb.jsonl", [row("d"), row("e")])
    Path(lines).write_text(Path(lines).read_text()[:-10])
    assert counts(cli.json("import", "agent-data", lines)) == (1, 0, 0, 0, 1)


def test_a_large_array_is_read_piece_by_piece(cli: Commands, tmp_path: Path) -> None:
    file = tmp_path / "kb.json"
    file.write_text(json.dumps([row(f"n{one}", content="é" * 150_000) for one in range(9)]))
    assert cli.json("import", "agent-data", str(file), "--dry-run")["preflight"]["live"] == 9


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", 0), (b"\n\n", 0), (b"caf\xe9,x", 3), (b"hello\n", 1), (b"a,b,c\n", 1), (b"{", 1)],
)
def test_files_that_are_no_dump(cli: Commands, tmp_path: Path, content: bytes, code: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert cli("import", "agent-data", str(file)).exit_code == code
    assert cli.error("import", "agent-data", str(tmp_path / "missing")) == (4, "NOT_FOUND")
    assert cli.error("import", "agent-data", str(tmp_path)) == (3, "INVALID_ARGUMENT")


# ---- the database ----


def test_a_database_that_is_not_there(cli: Commands, postgres: PostgresServer) -> None:
    url = "postgresql://me:s3cret-w0rd@127.0.0.1:1/kb?password=other-s3cret"
    result = cli("import", "agent-data", url, "--no-vectors")
    assert result.exit_code == 7
    assert "postgresql://me@127.0.0.1:1/kb" in result.stderr
    assert "s3cret" not in result.output
    for bad, code in (
        ("me:s3cret%zz@[host/kb", 3),
        ("me:s3cret@host/kb?what=s3cret", 3),
        ("me:s3cret@127.0.0.1:port/kb", 7),
    ):
        result = cli("import", "agent-data", f"postgresql://{bad}")
        assert result.exit_code == code
        assert "s3cret" not in result.output
    empty = postgres.database("empty")
    assert cli.error("import", "agent-data", empty) == (3, "INVALID_ARGUMENT")


def test_nothing_is_written_to_the_database(cli: Commands, postgres: PostgresServer) -> None:
    url = postgres.database("untouched")
    fill(url, [row("a", content="x")])
    query = (
        "SELECT (SELECT n_tup_upd + n_tup_del FROM pg_stat_user_tables), count(*) FROM kb_documents"
    )
    cli.ok("import", "agent-data", url, "--no-vectors")
    with psycopg.connect(url) as connection:
        assert connection.execute(query.encode()).fetchall() == [(0, 1)]


def test_without_the_driver_the_command_says_how_to_get_it(data: Path, tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('not here')")
    result = run_cli(
        "import",
        "agent-data",
        "postgresql://localhost/kb",
        data=data,
        environment={"PYTHONPATH": str(tmp_path)},
    )
    assert result.returncode == 1
    assert "pip install 'zibaldone[postgres]'" in result.stderr
    assert "Traceback" not in result.stderr


# ---- on a terminal ----


@pytest.fixture
def on_terminal(data: Path) -> Callable[..., tuple[int, str]]:
    """Run the command with a terminal for its input and errors, and type an answer."""

    def run(*arguments: str, answer: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, "--data", str(data), *arguments],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env=clean_environment({"TERM": "xterm"}, data=data),
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:
            pass  # Linux reports the closed terminal so
        os.close(ours)
        return process.wait(timeout=60), shown.decode()

    return run


def test_the_operator_is_asked(
    cli: Commands, tmp_path: Path, on_terminal: Callable[..., tuple[int, str]]
) -> None:
    dump = write_lines(tmp_path / "kb.jsonl", [row("a", content="x")])
    code, shown = on_terminal("import", "agent-data", dump, answer="n\n")
    assert (code, "Nothing was imported." in shown) == (1, True)
    assert not cli.data.exists()
    code, shown = on_terminal("import", "agent-data", dump, answer="y\n")
    assert (code, "100%" in shown) == (0, True)
    assert cli.ids() == ["a"]
    code, shown = on_terminal("import", "agent-data", dump, "--yes", answer="")
    assert (code, "Import these?" in shown) == (0, False)

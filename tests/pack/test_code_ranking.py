"""What the rules of the ranking see in a question and in a path."""

from __future__ import annotations

import pytest

from zibaldone.pack.code_ranking import (
    asked_roles,
    path_match,
    path_terms,
    read_query,
    roles_of,
    worth_of,
)


@pytest.mark.parametrize(
    ("question", "symbols"),
    [
        ("HTTPServer", ("HTTPServer",)),
        ("lru", ("lru",)),
        ("where is parse_url called", ("parse_url",)),
        ("how does asyncio.run end", ("run",)),
        ("what does abort() do", ("abort",)),
        ("std::vec::Vec", ("Vec",)),
        ("how are retries done", ()),
        ("Which files are read?", ()),
    ],
)
def test_symbols_of_a_question(question: str, symbols: tuple[str, ...]) -> None:
    assert read_query(question).symbols == symbols


def test_words_that_only_join_others_are_no_terms() -> None:
    assert set(read_query("how are the redirects followed").terms) == {"redirect", "follow"}
    assert read_query("what is this").terms


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "src/test_a.py",
        "pkg/a_test.go",
        "web/a.spec.ts",
        "src/ATest.java",
        "a/__tests__/b.js",
        "examples/a.py",
        "benchmarks/a.py",
        "typings/a.d.ts",
        "a.pyi",
        "vendor/x/a.go",
        "app.min.js",
        "CHANGELOG.md",
        "x/foo_pb2.py",
        "spec/models/a_spec.rb",
    ],
)
def test_secondary_files(path: str) -> None:
    assert worth_of(roles_of(path), frozenset()) < 1


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "latest.py",
        "contest/a.py",
        "testing/utils.py",
        "testclient.py",
        "attest.go",
        "src/example_filter_not/a.py",
        "inspector.py",
        "Contest.java",
        "docs/guide.md",
    ],
)
def test_other_files_count_in_full(path: str) -> None:
    assert worth_of(roles_of(path), frozenset()) == 1


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("unit tests of the parser", "tests/test_parser.py"),
        ("how is the parser tested", "tests/test_parser.py"),
        ("example of a plugin", "examples/plugin.py"),
        ("benchmark of reading", "benchmarks/read.py"),
        ("what changed in the last release", "CHANGELOG.md"),
    ],
)
def test_secondary_files_that_are_asked_for(question: str, path: str) -> None:
    assert worth_of(roles_of(path), asked_roles(question)) == 1


def test_the_name_of_a_file_counts_more_than_its_folder() -> None:
    query = read_query("where are redirects handled")
    rarities = dict.fromkeys(query.terms, 1.0)
    paths = ("net/redirects.py", "redirects/net.py", "net/other.py")
    name, folder, other = (path_match(query, path_terms(path), rarities) for path in paths)
    assert name > folder > other == 0


def test_the_beginning_of_a_word_counts_in_part() -> None:
    query = read_query("authentication")
    rarities = dict.fromkeys(query.terms, 1.0)
    exact = path_match(query, path_terms("authentication.py"), rarities)
    begun = path_match(query, path_terms("src/auth.py"), rarities)
    assert exact == 1 > begun > 0

"""Patterns of .gitignore mean what they mean to Git, and take no time to match."""

from __future__ import annotations

import time

import pytest

from zibaldone.errors import InvalidArgument
from zibaldone.limits import IGNORE_LINE_CHARS_MAX
from zibaldone.text.ignore import patterns_of


@pytest.mark.parametrize(
    ("pattern", "taken", "others"),
    [
        ("*.py[co]", ("a.pyc", "x/b.pyo"), ("a.py", "pyc")),
        ("a*b*c", ("abc", "a-b-b-c", "x/abcbc"), ("abcd", "ab/c")),
        ("/a*/b", ("a/b", "ax/b/c"), ("x/a/b", "ax/c/b")),
        ("**/a/**/b", ("a/b", "x/a/y/z/b", "a/a/b/c"), ("a", "b/a")),
        ("a/**/b/**/c", ("a/b/c", "a/x/b/b/y/c"), ("a/c/b", "a/b")),
        ("x/**", ("x/a", "x/a/b"), ("x", "a/x/b")),
        ("*[!a]", ("ab", "a/ab"), ("ba",)),
        ("a[+-9]b", ("a0b",), ("a/b",)),
        ("a\\*b", ("a*b",), ("axb",)),
    ],
)
def test_patterns(pattern: str, taken: tuple[str, ...], others: tuple[str, ...]) -> None:
    spec = patterns_of([pattern], "include")
    assert [path for path in (*taken, *others) if spec.match_file(path)] == list(taken)


def test_the_last_pattern_decides() -> None:
    spec = patterns_of(["**/build/**/*.txt", "!keep*.txt"], "exclude")
    assert spec.match_file("x/build/a/b.txt")
    assert not spec.match_file("x/build/a/keep-b.txt")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 9 + "b", "a" * 250),
        ("a**" * 9 + "b", "a" * 250),
        ("*a*a*a/" * 4 + "b", "/".join(["a" * 250] * 4) + "/c"),
        ("**/a/" * 9 + "b", "/".join("a" * 1_000)),
        ("a/**/" * 9 + "b", "/".join("a" * 1_000)),
        ("**/*a*a*a*b", "/".join(["a" * 250] * 8)),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    spec = patterns_of([pattern], "exclude")
    started = time.thread_time()
    assert not spec.match_file(path)
    assert time.thread_time() - started < 0.5


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="too long"):
        patterns_of(["a" * (IGNORE_LINE_CHARS_MAX + 1)], "include")

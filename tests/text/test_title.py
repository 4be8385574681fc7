"""A title for a text that was given none."""

from __future__ import annotations

import time

import pytest

from zibaldone.text.title import title_of


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("**Bold** and _slanted_ and `code`", "Bold and slanted and code"),
        ("***Both*** at once", "Both at once"),
        ("__init__ and snake_case_name stay apart", "init and snake_case_name stay apart"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("> - **A** [link](b) and [[page|words]]", "A link and words"),
    ],
)
def test_marks_are_left_out(body: str, title: str) -> None:
    assert title_of(body, "text/markdown") == title


@pytest.mark.parametrize(
    "line",
    ["*" * 8_000, "*" * 8_000 + "a", "a" + "_" * 8_000 + "b", "*_" * 4_000, "`" * 8_000],
    ids=["stars", "stars before a word", "lines in a word", "both", "code"],
)
def test_runs_of_marks_take_no_time(line: str) -> None:
    """An expression holds the interpreter's lock: while it runs, nobody is served."""
    started = time.thread_time()
    title_of(line, "text/markdown")
    assert time.thread_time() - started < 0.2

"""Benchmarks that run by hand: their questions are whole, and their figures mean what is said."""

from __future__ import annotations

import tomllib
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from benchmarks.answerable import area

QUESTIONS = Path(__file__).parents[2] / "benchmarks" / "first_hit.toml"


def test_the_hundred_questions_of_first_hit_name_documents_that_it_has() -> None:
    listed = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))
    documents = {
        *(f"topics/{name}" for name in topics),
        *(f"library/{name}" for name in listed["modules"]),
        *(f"readmes/{name}" for name in listed["readmes"]),
    }
    questions = listed["questions"]
    assert len({question.casefold() for question, *_ in questions}) == len(questions) == 100
    unknown = {name for _, *right in questions for name in right} - documents
    assert {name for name in unknown if not name.startswith("topics/")} == set()
    assert len(unknown) <= 2, "versions of Python differ in a topic or two"
    assert all(right for _, *right in questions)


def test_the_area_under_the_curve() -> None:
    assert area([0.9, 0.8], [0.1, 0.2, 0.3]) == 1.0
    assert area([0.1], [0.9]) == 0.0
    assert area([0.5, 0.5], [0.5]) == 0.5
    assert area([0.2, 0.9], [0.1, 0.3]) == pytest.approx(0.75)

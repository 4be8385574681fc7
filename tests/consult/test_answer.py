"""Bounds of what is made of a model's answers: a model writes what its caller tells it to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zibaldone.consult.answer import ChatAnswer, chat_answer, file_list, why_unfit
from zibaldone.consult.many import compare
from zibaldone.limits import (
    CONSULT_COMPARED_SENTENCES_MAX,
    CONSULT_DIFFERENCES_MAX,
    CONSULT_PATH_SHOWN_CHARS_MAX,
)
from zibaldone.model.consult import Session, SessionKey

EMPTY = {"count": 0, "paths": []}
TURN: dict[str, Any] = {
    "number": 1,
    "model": "m",
    "stop": "end",
    "usage": [1, 0, 0, 1],
    "cost": 0.0,
    "calls": 0,
    "report": {
        **dict.fromkeys(("sent", "unchanged", "store", "attachments", "deleted"), EMPTY),
        "left_out": {"count": 0, "files": []},
        "rewritten": "",
        "saved": 0,
        "redacted": 0,
        "notes": [],
    },
}


def answered(text: str, schema: dict[str, Any]) -> ChatAnswer:
    session = Session(SessionKey("key", "reviewer", "s"))
    return chat_answer(session, TURN, text, schema)


@pytest.mark.timeout(20)
def test_a_large_enum_is_not_compared_with_every_item() -> None:
    values = list(range(10_000))
    schema = {"items": {"enum": values}}
    assert why_unfit([9_999, 9_999], schema) == ""
    assert why_unfit([10_000], schema)
    assert "too large" in why_unfit([9_999] * 200_000, schema)


def test_an_answer_that_is_nested_too_deeply_is_told_of() -> None:
    deep = "[" * 300 + "]" * 300
    answer = answered(deep, {"type": "array"})
    assert "structured" not in answer
    assert "read it from `answer`" in answer["notes"][-1]
    assert answer["answer"] == deep


@pytest.mark.timeout(20)
def test_answers_of_many_short_lines_are_compared_in_part() -> None:
    answers = {
        f"a{number}": "\n".join(f"w{number}x{line} v{line}y{number}" for line in range(2_000))
        for number in range(8)
    }
    compared = compare(answers)
    assert len(compared["differences"]) == CONSULT_DIFFERENCES_MAX
    lines = [int(found["text"].split("x")[1].split()[0]) for found in compared["differences"]]
    assert max(lines) < CONSULT_COMPARED_SENTENCES_MAX


def test_long_paths_are_cut_at_their_beginning() -> None:
    path = "a/" * 2_000 + "end.py"
    (shown,) = file_list([path])["paths"]
    assert len(shown) == CONSULT_PATH_SHOWN_CHARS_MAX
    assert shown.endswith("a/end.py")
    assert len(json.dumps(file_list([path] * 1_000))) < 50_000

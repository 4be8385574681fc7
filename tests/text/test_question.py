"""The form of a question says what its answer is like."""

from __future__ import annotations

import pytest

from zibaldone.limits import QUESTION_CHARS_MAX
from zibaldone.text.question import Event, asks_for_many, event_in, time_order


@pytest.mark.parametrize(
    "text",
    [
        "What books has Tim read?",
        "Which of the two cities did Ann visit?",
        "How many times has Nate won?",
        "how often does she run",
        "What are the names of Ann's dogs?",
        "Where has Melanie camped?",
        "In which states did they live?",
        "What kinds of pottery did they make?",
    ],
)
def test_several_answers_are_asked_for(text: str) -> None:
    assert asks_for_many(text)


@pytest.mark.parametrize(
    "text",
    [
        "What book did Tim read?",
        "When did Ann win the games?",
        "What is the news?",
        "Which bus does Bob take?",
        "Who is Ann's sister?",
        "Where does she live?",
        "Does Bob like dogs?",
        "release notes",
        "",
    ],
)
def test_one_answer_is_asked_for(text: str) -> None:
    assert not asks_for_many(text)


def test_the_first_and_the_last() -> None:
    assert time_order("What did Bob paint recently?") == "last"
    assert time_order("What is her CURRENT job?") == "last"
    assert time_order("When did Ann first ski?") == "first"
    assert time_order("What did she originally plan?") == "first"
    assert time_order("Who took first place?") is None
    assert time_order("Is her current job her first?") is None
    assert time_order("What did Bob paint?") is None


@pytest.mark.parametrize(
    ("text", "phrase", "is_before"),
    [
        ("Where did Bob live before the move?", "the move", True),
        ("After the wedding, where did they go?", "the wedding", False),
        ("What has changed since Ann left the team?", "Ann left the team", False),
        ("What did they use prior to Postgres?", "Postgres", True),
    ],
)
def test_an_event(text: str, phrase: str, is_before: bool) -> None:
    assert event_in(text) == Event(phrase, is_before)


@pytest.mark.parametrize(
    "text",
    [
        "Has she done it before?",
        "Who looks after the dog?",
        "Who was the dog named after?",
        "What did he do after all?",
        "What happened the day before yesterday?",
        "What happened before that?",
    ],
)
def test_no_event(text: str) -> None:
    assert event_in(text) is None


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    long = "x " * QUESTION_CHARS_MAX
    assert event_in(f"{long} after the wedding") is None
    assert event_in("after " * 50_000) is not None
    assert time_order(f"{long} recently") is None

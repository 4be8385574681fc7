"""A question is looked for without the names of those who speak."""

from __future__ import annotations

from zibaldone.find.memory import query_without, text_without
from zibaldone.text.query import parse_query

PEOPLE = frozenset({"ann", "bob lee"})


def test_names_of_speakers_are_left_out() -> None:
    assert text_without("What is Ann's dog called?", PEOPLE) == "What is dog called?"
    assert text_without("Did BOB  LEE and Annabel ski?", PEOPLE) == "Did and Annabel ski?"
    assert text_without("Where did Ann\u2019s dog sleep", PEOPLE) == "Where did dog sleep"
    assert query_without(parse_query("ann skis"), PEOPLE).terms == ("skis",)


def test_not_where_nothing_else_is_asked() -> None:
    assert text_without("Who is Ann?", PEOPLE) == "Who is Ann?"
    assert text_without("Who is Eve?", PEOPLE) == "Who is Eve?"
    assert query_without(parse_query("Ann"), PEOPLE).terms == ("ann",)
    assert text_without("any text", frozenset()) == "any text"

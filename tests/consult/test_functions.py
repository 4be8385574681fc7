"""What an assistant is given for its calls, however much there is and whatever it writes."""

from __future__ import annotations

import asyncio

import pytest

from zibaldone.consult.functions import Functions
from zibaldone.errors import NotFound
from zibaldone.limits import CONSULT_SEARCH_HITS_MAX, CONSULT_TOOL_BYTES_MAX
from zibaldone.model.consult import ToolCall


def given(text: str, arguments: str = '{"query": "x"}') -> str:
    """For a search of a knowledge base that finds this text."""

    async def knowledge(query: str, limit: int) -> str:
        return text.format(query=query, limit=limit)

    functions = Functions(None, knowledge)
    return asyncio.run(functions.run(ToolCall("c1", "search_knowledge", arguments)))


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_a_long_result_is_cut_and_says_so(letter: str) -> None:
    room = CONSULT_TOOL_BYTES_MAX // len(letter.encode())
    assert given(letter * room) == letter * room
    text, _, note = given(letter * (room + 1)).rpartition("\n")
    assert text == letter * room
    assert note.startswith("[cut here")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"query": "owl", "limit": 3}', "owl 3"),
        ('{"query": "owl", "limit": "4"}', "owl 4"),
        ('{"query": "owl", "limit": 1000000}', f"owl {CONSULT_SEARCH_HITS_MAX}"),
        ('{"query": "owl", "limit": 0}', "Error: limit must be a whole number from 1."),
        ('{"query": " "}', "Error: query is missing"),
        ('{"query": 7}', "Error: query must be text."),
        ("[]", "Error: the arguments must be an object"),
        ("{", "Error: the arguments are not JSON"),
    ],
)
def test_what_a_model_writes_is_read_kindly_or_refused_in_words(arguments: str, told: str) -> None:
    assert given("{query} {limit}", arguments).startswith(told)


def test_an_error_is_told_to_the_assistant() -> None:
    async def knowledge(query: str, limit: int) -> str:
        raise NotFound("There is no such thing.")

    call = ToolCall("c1", "search_knowledge", '{"query": "x"}')
    assert asyncio.run(Functions(None, knowledge).run(call)) == "Error: There is no such thing."
    told = asyncio.run(Functions(None, None).run(call))
    assert told == (
        "Error: there is no function 'search_knowledge'; there are search_files, read_file."
    )

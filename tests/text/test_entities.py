"""What a text names: the table of text/entities.py, row by row."""

from __future__ import annotations

import pytest

from zibaldone.limits import ENTITIES_MAX
from zibaldone.text.entities import capitalised, entities_in, speakers_of
from zibaldone.text.memory import front_matter


def labels(text: str, **more: object) -> dict[str, str]:
    return {one.name: one.label for one in entities_in(text, **more)}  # type: ignore[arg-type]


def test_each_kind_has_its_label() -> None:
    front = front_matter(
        "---\nproject: Apollo\ntags: [x, y]\nrating: 8\ndue: 2026-01-02\n---\nText"
    )
    values = front.values
    assert (values["project"], front.body) == ("Apollo", "Text")
    found = labels(
        "See [[Home Page|home]] and [the guide](https://a.example/b). Run `make test` on "
        "parse_query and parseQuery in zibaldone.text. Grace met Alan Turing.",
        tags=("Deploy",),
        values=values,
    )
    assert found == {
        "Apollo": "Project",
        "x": "Tag",
        "y": "Tag",
        "Deploy": "Tag",
        "Home Page": "Page",
        "the guide": "Link",
        "make test": "Code",
        "parse_query": "Code",
        "parseQuery": "Code",
        "zibaldone.text": "Code",
        "Grace": "Name",
        "Alan Turing": "Name",
    }


def test_speakers_of_messages() -> None:
    text = "Ann Lee: Hi!\n[9:00] Bob: Hello: all well?\nno speaker here"
    assert speakers_of(text) == ["Ann Lee", "Bob"]
    assert labels(text, speakers=True)["Bob"] == "Person"
    assert labels(text).get("Bob") != "Person"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Great work by Ada.", ["Ada"]),
        ("Ada works at Acme.", ["Ada", "Acme"]),
        ("Ada's plan.", ["Ada"]),
        ("The plan of the Bank of England.", ["Bank of England"]),
        ("We met on Monday in May.", []),
        ("Äpfel kommen aus Österreich.", ["Österreich"]),
        ("", []),
    ],
)
def test_capitalised_names(text: str, names: list[str]) -> None:
    assert capitalised(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "---\na: [1\n---\nx",
        "---\n- a\n---\nx",
        "--- no\nx",
        "---\na: 1\nno end",
        "---\n{}: 1\n---\n",
    ],
)
def test_broken_front_matter_is_text(text: str) -> None:
    assert front_matter(text).values == {}


def test_there_is_an_end_to_it() -> None:
    text = " ".join(f"`name{number}`" for number in range(1_000))
    assert len(entities_in(text)) == ENTITIES_MAX

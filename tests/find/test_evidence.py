"""Which document comes first: another good chunk of it counts, and so does its title."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.drivers.runtimes import Caller, opened
from zibaldone.find.evidence import asked_terms, document_score, title_share
from zibaldone.model.chunk import ChunkView
from zibaldone.text.query import parse_query

FILLER = "The harbour was quiet that morning and nothing of note happened anywhere. " * 12
STRAY = "Sextant: to calibrate it, look at the mirrors, the mirrors. "
ABOUT = "To calibrate a sextant, look at its mirrors, both mirrors, before anything else. "


def chapters(*beginnings: str) -> str:
    return "\n\n".join(
        f"## Chapter {number}\n\n{begin}{FILLER}" for number, begin in enumerate(beginnings)
    )


@pytest.fixture
def ask(data: Path) -> Iterator[Caller]:
    with opened(data) as runtime:
        yield Caller(runtime)


def hits(ask: Caller, query: str, **more: object) -> list[tuple[str, float]]:
    results = ask("search_knowledge", query=query, **more)["results"]
    return [(hit["document_id"], hit["score"]) for hit in results]


def add(ask: Caller, path: str, content: str, title: str = "") -> None:
    ask("upload_document", path=path, content=content, title=title or path, mime="text/markdown")


def test_several_good_passages_are_more_than_one_stray_one(ask: Caller) -> None:
    add(ask, "stray", chapters("", "", STRAY, "", ""))
    add(ask, "about", chapters("", ABOUT, "", ABOUT, ABOUT))
    for number in range(8):
        add(ask, f"weak/{number}", chapters(f"A sextant was sold, number{number}. ", "", ""))
    found = hits(ask, "how to calibrate the mirrors of a sextant")
    assert [path for path, _ in found[:2]] == ["about", "stray"]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert max(scores) <= 1.0


def test_a_second_passage_counts_only_if_it_is_good_itself(ask: Caller) -> None:
    add(ask, "stray", chapters("A sextant was seen. ", "", STRAY, "", ""))
    add(ask, "about", chapters("", ABOUT, "", ABOUT, ABOUT))
    for number in range(8):
        add(ask, f"weak/{number}", chapters(f"A sextant was sold, number{number}. ", "", ""))
    found = hits(ask, "how to calibrate the mirrors of a sextant")
    assert [path for path, _ in found[:2]] == ["about", "stray"]


def test_a_title_that_names_the_subject_outweighs_a_word_more_in_the_text(ask: Caller) -> None:
    add(ask, "other", chapters("", STRAY + STRAY, ""), title="Odds and ends")
    add(ask, "named", chapters("", ABOUT, ""), title="Calibrate your sextant mirrors")
    for number in range(8):
        add(ask, f"weak/{number}", chapters(f"A sextant was sold, number{number}. ", "", ""))
    found = hits(ask, "how to calibrate the mirrors of a sextant")
    assert [path for path, _ in found[:2]] == ["named", "other"]


def test_two_chunks_of_a_short_document_are_one_passage(ask: Caller) -> None:
    add(ask, "one", chapters(STRAY))
    add(ask, "two", chapters(ABOUT, ABOUT))
    for number in range(8):
        add(ask, f"weak/{number}", chapters(f"A sextant was sold, number{number}. "))
    assert hits(ask, "how to calibrate the mirrors of a sextant")[0][0] == "one"


def test_a_second_passage_that_is_weak_says_nothing() -> None:
    chunks = [
        cast("ChunkView", SimpleNamespace(chunk_index=index, title="", text=""))
        for index in range(4)
    ]
    alone = document_score(0.9, 0.0, chunks[3:], [])
    assert document_score(0.9, 0.1, chunks[2:], []) == alone == 0.9
    assert document_score(0.9, 0.8, chunks[2:], []) > alone


def test_the_share_of_the_words_that_a_title_names_counts() -> None:
    asked = asked_terms(parse_query("how to calibrate the mirrors of a sextant"))
    assert title_share("Mirrors of sextants", asked) == pytest.approx(2 / 3)
    assert title_share("Odds and ends", asked) == title_share("", asked) == 0.0
    assert title_share("Anything", []) == 0.0


def test_a_title_names_a_word_in_any_of_its_forms() -> None:
    asked = asked_terms(parse_query("caf\u00e9"))
    assert len(asked[0]) > 1
    assert title_share("The cafe", asked) == title_share("The caf\u00e9", asked) == 1.0


def test_what_holds_a_quotation_stays_first(ask: Caller) -> None:
    add(ask, "quoting", chapters("", "", "She said: keep it dry. ", ""))
    add(ask, "about", chapters("", ABOUT, ABOUT, ABOUT), title="Calibrate sextant mirrors")
    found = hits(ask, 'how to calibrate the mirrors of a sextant, "keep it dry"')
    assert found[0][0] == "quoting"


def test_a_first_line_is_a_title_if_it_stands_alone(ask: Caller) -> None:
    """That of a paragraph, which is cut, or of a program names no subject."""
    lines = {"cut": " ", "program": "\n    ", "heading": "\n\n", "ruled": "\n=======\n"}
    for path, below in lines.items():
        content = f"Calibrate sextants{below}{FILLER}"
        ask("upload_document", path=path, content=content, mime="text/plain")
    add(ask, "better", f"{ABOUT}{ABOUT}{FILLER}")
    found = dict(hits(ask, "how to calibrate the mirrors of a sextant"))
    titled = min(found["heading"], found["ruled"])
    assert titled > found["program"] + 0.02
    assert titled > found["cut"] + 0.02

"""The beginning of a document: what a cut read shows, without reading the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from tests.store.kept import Kept
from zibaldone.model.document import DocumentFields, DocumentPart

BODIES = {
    "short": "zebra",
    "as long as asked for": "0123456789",
    "longer": "0123456789x",
    "two bytes each": "é" * 30,
    "three bytes each": "語" * 30,
    "four bytes each": "\U0001f600" * 30,
    "mixed": "aé語\U0001f600" * 10,
    "empty": "",
    "long": "é語" * 20_000,
}


def peek(kept: Kept, path: str, chars_max: int) -> DocumentPart:
    part = kept.read(lambda reader: reader.documents.peek(path, chars_max), is_small=True)
    assert part is not None
    return part


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("chars_max", [0, 1, 9, 10, 11, 1_000])
def test_a_part_is_the_document_with_the_beginning_of_its_body(
    kept: Kept, body: str, chars_max: int
) -> None:
    kept.create("d", body, title="T", tags=("x",), metadata={"k": [1]})
    part, document = peek(kept, "d", chars_max), kept.known("d")
    assert part.beginning == body[:chars_max]
    assert part.content_chars == len(body)
    assert part.is_whole == (len(body) <= chars_max)
    for field in fields(DocumentFields):
        assert getattr(part, field.name) == getattr(document, field.name), field.name


def test_a_deleted_document_says_so_and_one_that_never_was_is_none(kept: Kept) -> None:
    kept.create("d", "zebra " * 100)
    kept.delete("d")
    assert not peek(kept, "d", 10).is_live
    assert kept.read(lambda reader: reader.documents.peek("nothing", 10)) is None


def test_a_long_document_costs_no_more_than_a_short_one(kept: Kept) -> None:
    kept.create("short", "word " * 200)
    long_one = replace(
        kept.known("short"), document_id="long", body="wörd " * 1_500_000, storage_key=None
    )
    kept.write(lambda writer: writer.documents.insert(long_one))

    def seconds(path: str) -> float:
        start = time.perf_counter()
        assert len(peek(kept, path, 500).beginning) == 500
        return time.perf_counter() - start

    # In turn: a moment in which the machine is busy is the same for both.
    short, long = (min(times) for times in zip(*_pairs(seconds), strict=True))
    assert long < 4 * short + 0.006, "reading and unpacking it takes fifteen milliseconds"


def _pairs(seconds: Callable[[str], float]) -> list[tuple[float, float]]:
    return [(seconds("short"), seconds("long")) for _ in range(40)]

"""Dates in texts, relative ones counted from the time of the text."""

from __future__ import annotations

import pytest

from zibaldone.limits import DATES_MAX
from zibaldone.model.instant import from_iso, to_iso
from zibaldone.text.dates import named_dates

WEDNESDAY_US = from_iso("2026-11-18T15:00:00Z")


def spans(text: str, at_us: int = WEDNESDAY_US) -> list[tuple[str, str]]:
    return [
        (to_iso(named.from_us)[:10], to_iso(named.until_us)[:10])
        for named in named_dates(text, at_us)
    ]


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("on 2024-02-29", "2024-02-29", "2024-03-01"),
        ("on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("May 8th 2023 was fine", "2023-05-08", "2023-05-09"),
        ("the 3rd of December", "2025-12-03", "2025-12-04"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("I went yesterday.", "2026-11-17", "2026-11-18"),
        ("tomorrow", "2026-11-19", "2026-11-20"),
        ("the day before yesterday", "2026-11-16", "2026-11-17"),
        ("two days ago", "2026-11-16", "2026-11-17"),
        ("3 months ago", "2026-08-01", "2026-09-01"),
        ("a year ago", "2025-01-01", "2026-01-01"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("next month", "2026-12-01", "2027-01-01"),
        ("last weekend", "2026-11-14", "2026-11-16"),
        ("last Friday", "2026-11-13", "2026-11-14"),
        ("last Wednesday", "2026-11-11", "2026-11-12"),
        ("next Friday", "2026-11-20", "2026-11-21"),
    ],
)
def test_what_a_date_means(text: str, first: str, after: str) -> None:
    assert spans(text) == [(first, after)]


@pytest.mark.parametrize(
    "text", ["I may go", "may 2 of us", "31 February", "2024-13-01", "room 2023", "march on", ""]
)
def test_what_is_no_date(text: str) -> None:
    assert spans(text) == []


def test_several_in_their_order_and_no_more_than_enough() -> None:
    assert spans("yesterday, then 2024-01-01") == [
        ("2026-11-17", "2026-11-18"),
        ("2024-01-01", "2024-01-02"),
    ]
    assert len(spans("yesterday " * 1_000)) == DATES_MAX


def test_the_first_and_the_last_year_do_no_harm() -> None:
    assert spans("a hundred years; 900 years ago", 0) == [("1070-01-01", "1071-01-01")]
    assert spans("999 years ago", from_iso("0500-01-01")) == []
    assert spans("tomorrow", from_iso("9999-12-31")) == []

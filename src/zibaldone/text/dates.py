"""Dates that a text names, also relative ones ("last Friday"), as spans of time.

Relative dates are counted from the time of the text. What is named is a whole day, week, month or
year; a span holds all of it. English words and ISO dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from zibaldone.limits import DATES_CHARS_MAX, DATES_MAX

_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_NUMBERS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
} | {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4}

_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|(?-i:Mar(?:ch)?)|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"  # noqa: E501
_NUMBER = r"(?P<number>\d{1,3}|a couple of|couple of|a few|few|several|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"  # noqa: E501
_DAY_NAME = r"(?P<day>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"

END_OF_TIME_US = 2**62

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Named:
    """A span of time that a text names."""

    start: int
    """Of the words in the text."""
    end: int
    from_us: int
    until_us: int
    """Not part of the span any more."""
    is_relative: bool


Span = tuple[date, date]
"""The first day, and the first one after it."""


def named_dates(text: str, at_us: int) -> list[Named]:
    """What the text names, in its order; overlapping readings are given once."""
    today = (_EPOCH + timedelta(microseconds=at_us)).date()
    found: list[Named] = []
    taken_to = 0
    for start, end, span, is_relative in sorted(
        _all(text[:DATES_CHARS_MAX], today), key=lambda one: (one[0], -one[1])
    ):
        if start >= taken_to and len(found) < DATES_MAX:
            found.append(Named(start, end, _us(span[0]), _us(span[1]), is_relative))
            taken_to = end
    return found


def _all(text: str, today: date) -> Iterator[tuple[int, int, Span, bool]]:
    for pattern, read, is_relative in _READINGS:
        for match in pattern.finditer(text):
            try:
                span = read(match, today)
            except (ValueError, OverflowError):
                continue
            if span is not None:
                yield match.start(), match.end(), span, is_relative


def _us(day: date) -> int:
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _month_number(match: re.Match[str]) -> int:
    short = match["month"].lower()[:3]
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(short))


def _one_day(day: date) -> Span:
    return day, day + timedelta(days=1)


def _month(year: int, month: int) -> Span:
    return date(year, month, 1), _later_month(date(year, month, 1), 1)


def _later_month(first: date, months: int) -> date:
    number = first.year * 12 + first.month - 1 + months
    return date(number // 12, number % 12 + 1, 1)


def _iso(match: re.Match[str], _: date) -> Span:
    return _one_day(date(int(match[1]), int(match[2]), int(match[3])))


def _day_of_month(match: re.Match[str], today: date) -> Span:
    """With its year, or the last one that was."""
    month, day = _month_number(match), int(match["dom"])
    if match["year"]:
        return _one_day(date(int(match["year"]), month, day))
    this = date(today.year, month, day)
    return _one_day(this if this <= today else date(today.year - 1, month, day))


def _month_of_year(match: re.Match[str], _: date) -> Span:
    return _month(int(match["year"]), _month_number(match))


def _month_alone(match: re.Match[str], today: date) -> Span:
    month = _month_number(match)
    word = (match["which"] or "").lower()
    year = today.year
    if word == "next":
        year += month <= today.month
    elif word == "last":
        year -= month >= today.month
    else:
        year -= month > today.month
    return _month(year, month)


def _year(match: re.Match[str], _: date) -> Span | None:
    year = int(match["year"])
    return (date(year, 1, 1), date(year + 1, 1, 1)) if 1900 <= year <= 2100 else None


def _near_day(match: re.Match[str], today: date) -> Span:
    word = match[0].lower()
    steps = {"yesterday": -1, "last night": -1, "tomorrow": 1}
    if "before yesterday" in word:
        return _one_day(today - timedelta(days=2))
    if "after tomorrow" in word:
        return _one_day(today + timedelta(days=2))
    return _one_day(today + timedelta(days=steps.get(word, 0)))


def _ago(match: re.Match[str], today: date) -> Span:
    count = _NUMBERS.get(match["number"].lower())
    count = int(match["number"]) if count is None else count
    sign = 1 if match["from_now"] else -1
    unit = match["unit"].lower()
    if unit == "day":
        return _one_day(today + timedelta(days=sign * count))
    if unit == "week":
        day = today + timedelta(weeks=sign * count)
        return day - timedelta(days=3), day + timedelta(days=4)
    if unit == "month":
        return _month_of(_later_month(today.replace(day=1), sign * count))
    return date(today.year + sign * count, 1, 1), date(today.year + sign * count + 1, 1, 1)


def _month_of(first: date) -> Span:
    return first, _later_month(first, 1)


def _near_unit(match: re.Match[str], today: date) -> Span:
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1}[match["which"].lower()]
    unit = match["unit"].lower()
    monday = today - timedelta(days=today.weekday())
    if unit == "week":
        first = monday + timedelta(weeks=step)
        return first, first + timedelta(days=7)
    if unit == "weekend":
        saturday = monday + timedelta(days=5)
        if step < 0:
            saturday -= timedelta(days=7)
        elif step > 0 and today.weekday() >= 5:
            saturday += timedelta(days=7)
        return saturday, saturday + timedelta(days=2)
    if unit == "month":
        return _month_of(_later_month(today.replace(day=1), step))
    return date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1)


def _week_day(match: re.Match[str], today: date) -> Span:
    """The nearest one in the direction that the words say; without any, the last one."""
    number = next(n for n, name in enumerate(_DAYS) if name.startswith(match["day"].lower()[:3]))
    if (match["which"] or "").lower() in ("next", "this", "coming"):
        return _one_day(today + timedelta(days=(number - today.weekday() - 1) % 7 + 1))
    return _one_day(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


_READINGS: tuple[
    tuple[re.Pattern[str], Callable[[re.Match[str], date], Span | None], bool], ...
] = (
    (re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)"), _iso, False),
    (
        _compiled(rf"(?P<dom>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?P<year>\d{{4}}))?"),
        _day_of_month,
        False,
    ),
    (
        _compiled(rf"{_MONTH} (?P<dom>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?"),
        _day_of_month,
        False,
    ),
    (_compiled(rf"{_MONTH},? (?P<year>\d{{4}})"), _month_of_year, False),
    (
        _compiled(
            rf"(?:in|during|since|until|till|by|of|(?P<which>last|next|this)) {_MONTH}(?!,? \d)"
        ),
        _month_alone,
        True,
    ),
    (_compiled(r"(?:in|during|since|until|till|of|year|from) (?P<year>\d{4})"), _year, False),
    (
        _compiled(
            r"the day before yesterday|the day after tomorrow|yesterday|last night|tomorrow|today|"
            r"tonight|this morning|this afternoon|this evening"
        ),
        _near_day,
        True,
    ),
    (
        _compiled(
            rf"(?:in )?{_NUMBER} (?P<unit>day|week|month|year)s? (?:ago|(?P<from_now>from now))"
        ),
        _ago,
        True,
    ),
    (
        _compiled(r"(?P<which>last|past|previous|this|next) (?P<unit>weekend|week|month|year)"),
        _near_unit,
        True,
    ),
    (_compiled(rf"(?:(?P<which>last|next|this|coming|on) ){_DAY_NAME}"), _week_day, True),
)

"""What the form of a question says about its answer. English; deterministic.

| | words | example |
|---|---|---|
| several answers | a plural behind `what` or `which`, `are` or `have` behind it, `how many`, `how often` | "What books has Ann read?" |
| the last one | recently, latest, newest, currently, lately, … | "What did Bob paint recently?" |
| the first one | first, earliest, originally, initially | "When did Ann first ski?" |
| around an event | `before`, `after`, `since`, `until` and no date | "Where did Bob live before the move?" |
"""  # noqa: E501

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from zibaldone.limits import QUESTION_CHARS_MAX

TimeOrder = Literal["first", "last"]

_HOW_MANY = re.compile(r"how (?:many|often|frequently)\b")
_WHICH = re.compile(
    r"(?:(?:in|on|at|with|for|to|from|by|of|about) )?(?:what|which|who|whose|where)\b(.*)"
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_OF_SEVERAL = frozenset({"are", "were", "have", "has"})
_VERBS = frozenset("is was did does do will would could can should might may must".split())  # noqa: SIM905
_NOT_PLURAL = frozenset("his this its always perhaps across news series christmas".split())  # noqa: SIM905
_WORDS_LOOKED_AT = 6

_LAST = re.compile(
    r"\b(?:recent|recently|latest|newest|lately|current|currently|nowadays|these days|last time|"
    r"so far|right now)\b"
)
_FIRST = re.compile(r"\b(?:earliest|originally|initially|at first|first(?! (?:place|name|aid))\b)")

_AROUND = re.compile(
    r"(?<!\blook )(?<!\blooks )(?<!\blooked )(?<!\blooking )(?<!\bnamed )(?<!\btake )(?<!\btakes )"
    r"(?<!\bday )(?<!\bnight )(?<!\bweek )(?<!\bever )(?<!\blong )"
    r"\b(before|prior to|until|till|after|since)\s+"
    r"(?!all\b|that\b|this\b|then\b|now\b|it\b|and\b|or\b|yesterday\b|tomorrow\b)([^?!.,;:\n]+)",
    re.IGNORECASE,
)
_BEFORE = frozenset({"before", "prior to", "until", "till"})


@dataclass(frozen=True, slots=True)
class Event:
    """What a question is about is before or after it."""

    phrase: str
    is_before: bool


def asks_for_many(text: str) -> bool:
    """Does the question ask for several things?"""
    asked = _folded(text)
    if _HOW_MANY.match(asked):
        return True
    match = _WHICH.match(asked)
    for word in _WORD.findall(match[1])[:_WORDS_LOOKED_AT] if match else ():
        if word in _VERBS:
            return False
        if word in _OF_SEVERAL or _is_plural(word):
            return True
    return False


def time_order(text: str) -> TimeOrder | None:
    """Does the question ask for what was first, or last? With words of both: neither."""
    asked = _folded(text)
    is_first, is_last = _FIRST.search(asked), _LAST.search(asked)
    if bool(is_first) == bool(is_last):
        return None
    return "first" if is_first else "last"


def event_in(text: str) -> Event | None:
    """The event that the question puts its answer before or after."""
    match = _AROUND.search(_spaced(text))
    if match is None:
        return None
    return Event(match[2].strip(), match[1].lower() in _BEFORE)


def _folded(text: str) -> str:
    return _spaced(text).lower()


def _spaced(text: str) -> str:
    return " ".join(text[:QUESTION_CHARS_MAX].split())


def _is_plural(word: str) -> bool:
    return (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is", "'s", "\u2019s"))
        and word not in _NOT_PLURAL
    )

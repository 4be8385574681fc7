"""The YAML block at the beginning of a Markdown text.

A block that cannot be read is reported and left in the text; reading never fails. Words stay
words: a date is text, `no` is text, `12:30` is text, as in YAML 1.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from zibaldone.limits import (
    FRONT_MATTER_ALIASES_MAX,
    FRONT_MATTER_BLOCK_CHARS_MAX,
    FRONT_MATTER_DEPTH_MAX,
    FRONT_MATTER_VALUES_MAX,
)

_BYTE_ORDER_MARK = "\ufeff"
_OPENING = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)", re.MULTILINE)
_KEY = re.compile(r"[ \t]*[\w\"'][\w \"'.-]*:(?:[ \t\r\n]|\Z)")

# What PyYAML raises for a block that is not YAML, or has a tag whose value is not of its type.
PROBLEMS = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    values: Mapping[str, Any] = field(default_factory=dict)
    """What JSON can hold: text, numbers, true, false, null, lists and objects."""
    body: str = ""
    """The text after the block; the whole text if there is none that can be read."""
    problem: str = ""
    """Why a block could not be read; empty if it could, or if there is none."""


def read_front_matter(text: str, chars_max: int = FRONT_MATTER_BLOCK_CHARS_MAX) -> FrontMatter:
    """Split a text into its front matter and its body. A byte order mark is dropped.

    A block of more than `chars_max` characters is text.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    opening = _OPENING.match(text)
    if opening is None:
        return FrontMatter(body=text)
    end = opening.end() + chars_max
    closing = _CLOSING.search(text, opening.end(), end)
    if closing is None:
        # A rule of dashes may begin a text; a key after it says that this was meant as a block.
        if _KEY.match(text, opening.end()) is None:
            return FrontMatter(body=text)
        if len(text) > end:
            why = f"does not end within {chars_max} characters"
        else:
            why = "has no closing line ---"
        return FrontMatter(body=text, problem=f"The front matter {why}.")
    try:
        values = _values(text[opening.end() : closing.start()])
    except PROBLEMS as problem:
        return FrontMatter(body=text, problem=f"The front matter {_reason(problem)}.")
    return FrontMatter(values=values, body=text[closing.end() :])


def tags_of(values: Mapping[str, Any]) -> list[str]:
    """The tags of front matter: a list, or one text separated by commas."""
    given = values.get("tags", values.get("tag"))
    if isinstance(given, str):
        given = given.split(",")
    if not isinstance(given, list):
        given = [] if given is None else [given]
    return [tag for one in given if (tag := as_line(one).lstrip("#").strip())]


def as_line(value: object) -> str:
    """A value as one line of text; nothing for lists and objects."""
    if value is None or isinstance(value, dict | list):
        return ""
    try:
        return " ".join(str(value).split())
    except ValueError:  # a number of more digits than Python writes
        return ""


class _Refused(ValueError):
    """The block is beyond a bound, or no mapping."""


def _reason(problem: Exception) -> str:
    if isinstance(problem, _Refused):
        return str(problem)
    mark = getattr(problem, "problem_mark", None)
    place = f" (line {mark.line + 2})" if mark is not None else ""
    why = getattr(problem, "problem", None) or "a value is not of its type"
    return f"is not valid YAML{place}: {why}"


def _values(block: str) -> dict[str, Any]:
    check_events(block)
    loaded = yaml.load(block, Loader=_Loader)  # noqa: S506 - made of PyYAML's safe loader
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise _Refused("is not a list of keys and values")
    plain: dict[str, Any] = _Plain().of(loaded, 0)
    return plain


def check_events(block: str) -> None:
    """Refuse what would be expensive to build; looking at events builds nothing.

    Values are counted with aliases spelled out: merge keys (`<<`) copy them while YAML is read.
    """
    aliases = 0
    counts = [0]  # of the collections that are open, outermost first
    anchors: list[str | None] = []
    counted: dict[str, int] = {}
    for event in yaml.parse(block, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > FRONT_MATTER_ALIASES_MAX:
                raise _Refused(f"has more than {FRONT_MATTER_ALIASES_MAX} aliases")
            counts[-1] += counted.get(event.anchor or "", 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(counts) > FRONT_MATTER_DEPTH_MAX:
                raise _Refused(f"is nested more than {FRONT_MATTER_DEPTH_MAX} levels deep")
            counts.append(1)
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            count, anchor = counts.pop(), anchors.pop()
            counts[-1] += count
            if anchor is not None:
                counted[anchor] = count
        elif isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
        if counts[-1] > 2 * FRONT_MATTER_VALUES_MAX:  # keys and values
            raise _Refused(f"has more than {FRONT_MATTER_VALUES_MAX} values")


class _Plain:
    """Copies what was loaded as JSON values. Aliases are spelled out, so the copies are counted."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: object, depth: int) -> Any:
        self._count += 1
        # An alias may point to what contains it.
        if self._count > FRONT_MATTER_VALUES_MAX or depth > 2 * FRONT_MATTER_DEPTH_MAX:
            raise _Refused(f"has more than {FRONT_MATTER_VALUES_MAX} values")
        if isinstance(value, dict):
            return {self._key(key): self.of(one, depth + 1) for key, one in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.of(one, depth + 1) for one in value]
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        return str(value)

    @staticmethod
    def _key(key: object) -> str:
        if isinstance(key, bool) or key is None:
            return {True: "true", False: "false", None: "null"}[key]
        return key if isinstance(key, str) else str(key)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}


_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"\A<<\Z"), ["<"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"\A(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"\A(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"\A[-+]?(?:0|[1-9][0-9]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"\A[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\Z"),
    list("-+0123456789."),
)

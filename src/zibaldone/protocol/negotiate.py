"""JSON or an event stream? The Accept header decides, by a pure function that never raises.

JSON by default and on a tie; an event stream when it is all that is acceptable or strictly
preferred; nothing (406) only when real media types are named and neither is among them. A profile
whose clients read nothing but events turns the first two around.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from zibaldone.limits import ACCEPT_CHARS_CACHED_MAX

Format = Literal["json", "sse"]

ACCEPTABLE = "Acceptable media types: application/json, text/event-stream"

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a word of HTTP's grammar
_MEDIA_RANGE = re.compile(rf"({_TOKEN})/({_TOKEN})")

_JSON_RANGES = ("application/json", "application/*", "*/*")
_SSE_RANGES = ("text/event-stream", "text/*")
"""Most specific first: `application/json;q=0, */*` does not want JSON. Anything at all (`*/*`) is
no wish for a stream, unless JSON is the one thing that is not wanted."""


@dataclass(frozen=True, slots=True)
class Accept:
    wants_json: bool
    wants_sse: bool
    q_json: float
    q_sse: float
    any_valid_media: bool
    names_json: bool = field(default=False, compare=False)
    """JSON is accepted by its name, not as one of all types."""

    @property
    def is_unsupported(self) -> bool:
        return self.any_valid_media and not (self.wants_json or self.wants_sse)

    @property
    def format(self) -> Format:
        if self.wants_sse and (not self.wants_json or self.q_sse > self.q_json):
            return "sse"
        return "json"

    @property
    def format_of_graphiti(self) -> Format:
        """Events by default and on a tie; JSON when it is named and events are wanted less."""
        if self.is_unsupported or (self.names_json and self.q_sse < self.q_json):
            return "json"
        return "sse"


ANYTHING = Accept(wants_json=True, wants_sse=False, q_json=1.0, q_sse=0.0, any_valid_media=False)


def parse_accept(header: str | None) -> Accept:
    """Read an Accept header; one that says nothing sensible accepts anything."""
    if header is not None and len(header) > ACCEPT_CHARS_CACHED_MAX:
        return _parse(header)
    return _parse_cached(header)


def _parse(header: str | None) -> Accept:
    qualities: dict[str, float] = {}
    for item in (header or "").split(","):
        media, _, parameters = item.partition(";")
        media = media.strip().lower()
        if media == "*":
            media = "*/*"
        if _MEDIA_RANGE.fullmatch(media):
            qualities[media] = max(_quality(parameters), qualities.get(media, 0.0))
    if not qualities:
        return ANYTHING
    q_json = _best(qualities, _JSON_RANGES)
    q_sse = _best(qualities, _SSE_RANGES if q_json > 0 else (*_SSE_RANGES, "*/*"))
    return Accept(q_json > 0, q_sse > 0, q_json, q_sse, True, "application/json" in qualities)


_parse_cached = lru_cache(maxsize=512)(_parse)
"""Real clients send few different headers; a long one is not worth its place in memory."""


def _best(qualities: dict[str, float], ranges: tuple[str, ...]) -> float:
    for media in ranges:
        if media in qualities:
            return qualities[media]
    return 0.0


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            return _clamped(value)
    return 1.0


def _clamped(value: str) -> float:
    try:
        quality = float(value)
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(quality) else min(1.0, max(0.0, quality))

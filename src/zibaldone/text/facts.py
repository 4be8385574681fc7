"""Sentences that join two entities, found without a model.

The subject is the first entity of a sentence, or the speaker of a message where the sentence says
`I`. The relation is what stands between it and the next one. Some relations can be true only once
at a time: they have a slot, and a later fact in the same slot ends an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from zibaldone.limits import ENTITY_CHARS_MAX, FACT_CHARS_MAX, FACTS_MAX, RELATION_CHARS_MAX
from zibaldone.model.memory import Entity, Fact
from zibaldone.text.dates import named_dates
from zibaldone.text.entities import entity_key

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"”')]*\s+(?=[^\sa-z])|\n+")
_MARKS = re.compile(r"^[\s>*#\u2022\u2013-]+|[*_`]{2,}")
_TRIMMED = " ,;:-\u2013'\u2019"
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|my|we|our|me|us|mine)\b", re.IGNORECASE)
_TURN = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{1,60}\][ \t]*)?([^\W\d_a-z][^\W_]*(?:[ .-][^\W_]+){0,3}):[ \t]+"
)

_SLOTS: tuple[tuple[str, str], ...] = (
    (
        "lives in",
        (
            r"(?:liv(?:es?|ing) in|mov(?:ed|es|ing) to|relocat(?:ed|es|ing) to|"
            r"(?:is|am|are) based in|resid(?:es?|ing) in|settled in)"
        ),
    ),
    (
        "works at",
        (
            r"(?:work(?:s|ing)? (?:at|for)|joined|(?:is|am) employed (?:at|by)|"
            r"(?:got|started|took) (?:a|the|my|her|his) (?:new )?job (?:at|with))"
        ),
    ),
    ("is married to", r"(?:(?:is|am|got) (?:now )?(?:married|engaged) to|married)"),
    ("is led by", r"(?:is|are) (?:now )?(?:led|headed|run|managed|maintained|owned) by"),
    ("runs on", r"(?:runs?|is (?:now )?(?:running|deployed|hosted)) (?:on|in|at)"),
    (
        "uses",
        (
            r"(?:(?:now )?uses?|(?:switched|migrated|changed|upgraded) to|"
            r"is (?:now )?(?:using|written in|built with))"
        ),
    ),
    ("is called", r"(?:is|was) (?:now )?(?:called|named|renamed(?: to)?)"),
    ("prefers", r"prefers?"),
    ("is located in", r"(?:is|are) (?:now )?(?:located|stored|kept|found) (?:in|at|on|under)"),
)
_SLOT_PATTERNS = tuple(
    (slot, re.compile(rf"\b{pattern}\b", re.IGNORECASE)) for slot, pattern in _SLOTS
)
_ENDED = re.compile(r"\b(?:no longer|not .{0,20}any ?more|stopped|quit|used to)\b", re.IGNORECASE)
_MAY_BE_ATTRIBUTE = re.compile(r"['\u2019]s | of ")
_ATTRIBUTE = re.compile(
    r"^(?:the )?(?:(?P<owner>[^\n.]{1,80}?)['\u2019]s (?P<name>[\w -]{2,40}?)|"
    r"(?P<name2>[\w-][\w -]{1,40}?) of (?P<owner2>[^\n.]{1,80}?)) "
    r"(?:is|was|are|were|became|changed to|is now|are now|has been set to) (?:now )?"
    r"(?P<value>[^\n]{1,120}?)[.!]?$",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(text):
        cleaned = _MARKS.sub("", part).strip()
        if cleaned:
            yield cleaned


def facts_in(
    text: str, entities: Sequence[Entity], valid_at_us: int, *, is_message: bool
) -> list[Fact]:
    if not entities:
        return []
    finder = _finder(entities)
    facts: list[Fact] = []
    speaker = ""
    for line in text.split("\n"):
        turn = _TURN.match(line) if is_message else None
        if turn is not None:
            speaker = turn[1] if len(turn[1]) <= ENTITY_CHARS_MAX else ""
        for sentence in sentences(line if turn is None else line[turn.end() :]):
            fact = _fact(sentence[:FACT_CHARS_MAX], finder, speaker, valid_at_us)
            if fact is not None:
                facts.append(fact)
                if len(facts) == FACTS_MAX:
                    return facts
    return facts


def stated_fact(subject: str, relation: str, object_: str, sentence: str, valid_at_us: int) -> Fact:
    """A fact that somebody else found in a sentence: slot and time are by the same rules."""
    said = " ".join(relation.replace("_", " ").split())
    key, target = entity_key(subject), entity_key(object_)
    slot, time_us = _slot(said), _time(sentence, valid_at_us)
    if slot and _ENDED.search(said):
        target = f"not {target}"
    attribute = None
    if not slot and _MAY_BE_ATTRIBUTE.search(sentence):
        attribute = _ATTRIBUTE.match(sentence)
    if attribute is not None:
        owner = entity_key(attribute["owner"] or attribute["owner2"] or "")
        name = entity_key(attribute["name"] or attribute["name2"] or "")
        if owner == key and target == entity_key(attribute["value"]):
            slot, time_us = f"its {name}"[:RELATION_CHARS_MAX], valid_at_us
    return Fact(key, said[:RELATION_CHARS_MAX], target, sentence, time_us, slot)


def _finder(entities: Iterable[Entity]) -> re.Pattern[str]:
    """Longer names first: `Project Apollo` is not `Apollo`."""
    names = sorted({entity.name for entity in entities}, key=len, reverse=True)
    return re.compile("(?<!\\w)(?:" + "|".join(map(re.escape, names)) + ")(?!\\w)", re.IGNORECASE)


def _fact(sentence: str, finder: re.Pattern[str], speaker: str, valid_at_us: int) -> Fact | None:
    attribute = _ATTRIBUTE.match(sentence) if _MAY_BE_ATTRIBUTE.search(sentence) else None
    if attribute is not None and (
        made := _attribute_fact(sentence, attribute, finder, valid_at_us)
    ):
        return made
    places = list(_different(finder.finditer(sentence)))
    if speaker and (said := _FIRST_PERSON.search(sentence)) is not None:
        subject, after = speaker, said.end()
        places = [place for place in places if entity_key(place[0]) != entity_key(speaker)]
        later = [place for place in places if place.start() >= after] or places
        if not later:
            return None
        target = later[0]
        between = sentence[after : target.start()]
    elif len(places) >= 2:
        subject, target = places[0][0], places[1]
        between = sentence[places[0].end() : target.start()]
    else:
        return None
    slot = _slot(between)
    object_ = entity_key(target[0])
    if slot and _ENDED.search(between):
        object_ = f"not {object_}"
    return Fact(
        entity_key(subject),
        " ".join(between.split()).strip(_TRIMMED)[:RELATION_CHARS_MAX] or "with",
        object_,
        f"{speaker}: {sentence}" if speaker else sentence,
        _time(sentence, valid_at_us),
        slot,
    )


def _different(places: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    seen: set[str] = set()
    for place in places:
        key = entity_key(place[0])
        if key not in seen:
            seen.add(key)
            yield place


def _attribute_fact(
    sentence: str, match: re.Match[str], finder: re.Pattern[str], valid_at_us: int
) -> Fact | None:
    """`Apollo's deadline is 3 May`: an attribute has one value at a time."""
    owner = (match["owner"] or match["owner2"] or "").strip()
    name = (match["name"] or match["name2"] or "").strip()
    if finder.fullmatch(owner) is None or not name:
        return None
    return Fact(
        entity_key(owner),
        name,
        entity_key(match["value"]),
        sentence,
        valid_at_us,
        f"its {entity_key(name)}"[:RELATION_CHARS_MAX],
    )


def _slot(between: str) -> str:
    return next((slot for slot, pattern in _SLOT_PATTERNS if pattern.search(between)), "")


def _time(sentence: str, valid_at_us: int) -> int:
    """The one time that the sentence names, if that is past; else that of the episode."""
    named = named_dates(sentence, valid_at_us)
    if len(named) == 1 and named[0].from_us < valid_at_us:
        return named[0].from_us
    return valid_at_us

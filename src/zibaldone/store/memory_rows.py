"""Rows of episodes, entities and facts → values; the same for every engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zibaldone.limits import MEMORY_LABELS_MAX
from zibaldone.model.memory import (
    Entity,
    EpisodeHead,
    Fact,
    Node,
    StoredFact,
    Surroundings,
)

Row = Sequence[Any]

END_OF_TIME_US = 2**62


def heads(selected: Iterable[Row]) -> list[EpisodeHead]:
    return [EpisodeHead(*row) for row in selected]


def latest_of(groups: Iterable[Sequence[EpisodeHead]], limit: int) -> list[EpisodeHead]:
    """The latest of several groups, each sorted already."""
    merged = [head for heads in groups for head in heads]
    merged.sort(key=lambda head: -head.valid_at_us)  # stable: equal times stay as they were
    return merged[:limit]


def neighbour_keys(selected: Iterable[Row]) -> set[int]:
    return {key for row in selected for key in row[4:8] if key is not None}


def surroundings(selected: Iterable[Row], ids: Mapping[int, str]) -> dict[str, Surroundings]:
    """`ids`: of those neighbours that the caller sees."""
    found = {}
    for row in selected:
        before = tuple(ids[key] for key in row[4:6] if key in ids)
        after = tuple(ids[key] for key in row[6:8] if key in ids)
        found[row[0]] = Surroundings(EpisodeHead(*row[:4]), before, after)
    return found


def entities(selected: Iterable[Row]) -> dict[str, list[Entity]]:
    found: dict[str, list[Entity]] = {}
    for document_id, key, name, label in selected:
        found.setdefault(document_id, []).append(Entity(key, name, label))
    return found


def nodes(group_id: str, selected: Iterable[Row]) -> list[Node]:
    """One for each key, in the order of the rows; a row is a key with one of its labels, of which
    the most frequent ones are kept."""
    found: dict[str, Node] = {}
    for key, name, label, count, since_us in selected:
        known = found.get(key)
        if known is None:
            found[key] = Node(group_id, key, name, (label,), since_us, count)
        else:
            found[key] = Node(
                group_id,
                key,
                known.name,
                (*known.labels, label)[:MEMORY_LABELS_MAX],
                min(known.since_us, since_us),
                known.episodes + count,
            )
    return list(found.values())


Slot = tuple[str, str, str]
"""Group, subject and slot: what can have one value at a time."""


def slots_of(selected: Iterable[Row]) -> dict[Slot, int]:
    """The slots of facts, each with the time of its earliest fact among them."""
    since: dict[Slot, int] = {}
    for row in selected:
        slot = (row[2], row[4], row[9])
        if slot[2]:
            since[slot] = min(row[8], since.get(slot, row[8]))
    return since


def stored_facts(selected: Iterable[Row], changes: Iterable[Row]) -> list[StoredFact]:
    """`changes`: the facts by which their slots got another value, the earliest first. What ended
    a fact is the next one."""
    by_slot: dict[Slot, tuple[list[tuple[int, int, int]], list[Row]]] = {}
    for group_id, subject, slot, valid_at_us, document_key, index, text, document_id in changes:
        places, ends = by_slot.setdefault((group_id, subject, slot), ([], []))
        places.append((valid_at_us, document_key, index))
        ends.append((valid_at_us, text, document_id))
    found = []
    for row in selected:
        places, ends = by_slot.get((row[2], row[4], row[9]), ([], []))
        following = bisect_right(places, (row[8], row[11], row[3]))
        ended = ends[following] if following < len(ends) else None
        found.append(_stored_fact(row[:11], ended))
    return found


def _stored_fact(row: Row, ended: Row | None) -> StoredFact:
    (
        document_id,
        episode_id,
        group_id,
        index,
        subject,
        relation,
        object_,
        text,
        valid_at_us,
        slot,
        created_at_us,
    ) = row
    fact = Fact(subject, relation, object_, text, valid_at_us, slot)
    found = StoredFact(document_id, episode_id, group_id, index, fact, created_at_us)
    if ended is None:
        return found
    invalid_at_us, replaced_by, replaced_in = ended
    return StoredFact(
        document_id,
        episode_id,
        group_id,
        index,
        fact,
        created_at_us,
        invalid_at_us,
        replaced_by,
        replaced_in,
    )

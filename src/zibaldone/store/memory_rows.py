"""Rows of episodes, entities and facts → values; the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
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


Ask = Sequence[Any]
"""Of a fact whose end is looked for: group, subject, slot, object, and its place in the slot, which
is its time, the key of its document and its index."""

NextChanges = Callable[[Sequence[Ask]], Iterable[Row]]
"""For each by its number: place, text and document id of the next fact of the slot that has another
object. Those that nothing ends are left out."""


def stored_facts(selected: Sequence[Row], next_changes: NextChanges) -> list[StoredFact]:
    """With what ended each of them: the next fact by which its slot got another value.

    Nothing else of a slot is kept, which may have changed a million times. And no part of it is
    read twice: facts that repeat one another have the same end.
    """
    ends: dict[tuple[int, int], Row] = {}
    left = _runs(selected)
    while left:
        changes = {number: change for number, *change in next_changes([run[-1] for run in left])}
        behind = []
        for number, run in enumerate(left):
            end = changes.get(number)
            if end is None:
                continue  # nor does anything end those after it
            while run and run[-1][4:] < tuple(end[:3]):
                *_, document_key, index = run.pop()
                ends[document_key, index] = end
            if run:  # the slot had the same value again
                behind.append(run)
        left = behind
    return [_stored_fact(row[:11], ends.get((row[11], row[3]))) for row in selected]


def _runs(selected: Iterable[Row]) -> list[list[tuple[Any, ...]]]:
    """Facts that follow one another in a slot and say the same, the last first."""
    asks = [(row[2], row[4], row[9], row[6], row[8], row[11], row[3]) for row in selected if row[9]]
    asks.sort(key=lambda ask: (ask[:3], ask[4:]), reverse=True)
    return [list(run) for _, run in groupby(asks, key=lambda ask: ask[:4])]


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
    invalid_at_us, _, _, replaced_by, replaced_in = ended
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

"""Episodes, and what they mention and state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.limits import FACTS_MAX
from zibaldone.model.document import Document
from zibaldone.model.memory import (
    MEMORY_PREFIX,
    Entity,
    Episode,
    EpisodeHead,
    Node,
    StoredFact,
    Surroundings,
)
from zibaldone.store import memory_rows, rows, statements
from zibaldone.store.memory_rows import END_OF_TIME_US
from zibaldone.store.tenants import range_values, seen_groups, visible_range

_SQL = statements.load("zibaldone.store.sqlite", "memory.sql")


class Memory:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def find(self, episode_id: str, *, limit: int) -> list[EpisodeHead]:
        return memory_rows.heads(self._select("find", episode_id=episode_id, limit=limit))

    def latest(
        self, group_ids: Iterable[str], *, limit: int, until_us: int | None = None
    ) -> list[EpisodeHead]:
        found = [
            memory_rows.heads(
                self._select("latest", group_id=group_id, limit=limit, until_us=_until(until_us))
            )
            for group_id in seen_groups(self._tenant, group_ids)
        ]
        return memory_rows.latest_of(found, limit)

    def groups(self, *, limit: int | None = None) -> dict[str, int]:
        limit = -1 if limit is None else limit
        return dict(sorted(self._of_groups("groups", "groups_own", limit=limit)))

    def totals(self) -> tuple[int, int]:
        (counted,) = self._of_groups("totals", "totals_own") or [(0, 0)]
        groups, episodes = counted
        return groups, episodes

    def _of_groups(self, of_all: str, of_own: str, **values: Any) -> Sequence[Any]:
        if not self._tenant.prefix:
            return self._select(of_all, **values)
        visible = visible_range(self._tenant, MEMORY_PREFIX)
        if visible is None:
            return []
        start, end = visible
        return self._select(of_own, start=start, end=end, **values)

    def around(self, document_ids: Iterable[str]) -> dict[str, Surroundings]:
        selected = self._select("around", document_ids=rows.dumps(list(document_ids)))
        keys = memory_rows.neighbour_keys(selected)
        ids = dict(self._select("ids", document_keys=rows.dumps(sorted(keys))))
        return memory_rows.surroundings(selected, ids)

    def entities_of(self, document_ids: Iterable[str]) -> dict[str, list[Entity]]:
        values = {"document_ids": rows.dumps(list(document_ids))}
        return memory_rows.entities(self._select("entities_of", **values))

    def nodes(
        self, group_id: str, entity_keys: Iterable[str], *, until_us: int | None = None
    ) -> list[Node]:
        if not seen_groups(self._tenant, [group_id]):
            return []
        selected = self._select(
            "nodes",
            group_id=group_id,
            entity_keys=rows.dumps(list(dict.fromkeys(entity_keys))),
            until_us=_until(until_us),
        )
        told = (
            (key, name, label, mentions, since_us)
            for key, labels in selected
            for name, label, mentions, since_us in orjson.loads(labels)
        )
        return memory_rows.nodes(group_id, told)

    def facts_of(
        self, document_ids: Iterable[str], *, until_us: int | None = None
    ) -> list[StoredFact]:
        selected = self._select(
            "facts_of",
            document_ids=rows.dumps(list(document_ids)),
            until_us=_until(until_us),
        )

        def next_changes(asked: Sequence[memory_rows.Ask]) -> Sequence[Any]:
            values = {"asked": rows.dumps(asked), "until_us": _until(until_us)}
            found = self._select("next_changes", **values)
            return [(number, *orjson.loads(change)) for number, change in found if change]

        return memory_rows.stored_facts(selected, next_changes)

    def stating(
        self, group_id: str, entity_key: str, *, limit: int, until_us: int | None = None
    ) -> list[str]:
        if not seen_groups(self._tenant, [group_id]):
            return []
        selected = self._select(
            "stating",
            group_id=group_id,
            entity_key=entity_key,
            limit=limit,
            facts_max=FACTS_MAX,
            until_us=_until(until_us),
        )
        return [document_id for document_id, _ in selected]

    def put(self, document: Document, episode: Episode | None) -> None:
        values: dict[str, Any] = {
            "document_key": rows.storage_key(document),
            "namespace": self._tenant.namespace,
        }
        for statement in ("forget_facts", "forget_entities", "forget_episode"):
            self._raw.execute(_SQL[statement], values)
        if episode is None:
            return
        values |= {"group_id": episode.group_id, "valid_at_us": episode.valid_at_us}
        self._raw.execute(_SQL["put_episode"], {**values, "episode_id": episode.episode_id})
        if episode.entities:
            listed = [(one.key, one.name, one.label) for one in episode.entities]
            self._raw.execute(_SQL["put_entities"], {**values, "entities": rows.dumps(listed)})
        if episode.facts:
            facts = [
                (one.subject, one.relation, one.object, one.slot, one.text, one.valid_at_us)
                for one in episode.facts
            ]
            self._raw.execute(_SQL["put_facts"], {**values, "facts": rows.dumps(facts)})

    def _select(self, statement: str, **values: Any) -> Sequence[Any]:
        return list(self._raw.execute(_SQL[statement], {**range_values(self._tenant), **values}))


def _until(until_us: int | None) -> int:
    return END_OF_TIME_US if until_us is None else until_us

"""Episodes, and what they mention and state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.limits import FACTS_MAX
from zibaldone.model.document import Document
from zibaldone.model.memory import Entity, Episode, EpisodeHead, Node, StoredFact, Surroundings
from zibaldone.store import memory_rows, rows, statements
from zibaldone.store.memory_rows import END_OF_TIME_US
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.tenants import range_values, seen_groups

_SQL = statements.load("zibaldone.store.postgres", "memory.sql")

_ASKED = ("groups", "subjects", "slots", "objects", "times_us", "document_keys", "indexes")
"""The parts of `memory_rows.Ask`."""


class Memory:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
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
        return dict(sorted(self._select("groups", limit=limit)))

    def totals(self) -> tuple[int, int]:
        ((groups, episodes),) = self._select("totals")
        return groups, episodes

    def around(self, document_ids: Iterable[str]) -> dict[str, Surroundings]:
        selected = self._select("around", document_ids=list(document_ids))
        keys = memory_rows.neighbour_keys(selected)
        ids = dict(self._select("ids", document_keys=sorted(keys)))
        return memory_rows.surroundings(selected, ids)

    def entities_of(self, document_ids: Iterable[str]) -> dict[str, list[Entity]]:
        selected = self._select("entities_of", document_ids=list(document_ids))
        return memory_rows.entities(selected)

    def nodes(
        self, group_id: str, entity_keys: Iterable[str], *, until_us: int | None = None
    ) -> list[Node]:
        if not seen_groups(self._tenant, [group_id]):
            return []
        selected = self._select(
            "nodes",
            group_id=group_id,
            entity_keys=list(dict.fromkeys(entity_keys)),
            until_us=_until(until_us),
        )
        return memory_rows.nodes(group_id, selected)

    def facts_of(
        self, document_ids: Iterable[str], *, until_us: int | None = None
    ) -> list[StoredFact]:
        selected = self._select(
            "facts_of", document_ids=list(document_ids), until_us=_until(until_us)
        )

        def next_changes(asked: Sequence[memory_rows.Ask]) -> Sequence[Any]:
            columns = zip(_ASKED, map(list, zip(*asked, strict=True)), strict=True)
            return self._select("next_changes", **dict(columns), until_us=_until(until_us))

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
            self._transaction.defer(_SQL[statement], values)
        if episode is None:
            return
        values |= {"group_id": episode.group_id, "valid_at_us": episode.valid_at_us}
        self._transaction.defer(_SQL["put_episode"], {**values, "episode_id": episode.episode_id})
        if episode.entities:
            self._transaction.defer(
                _SQL["put_entities"],
                {
                    **values,
                    "entity_keys": [one.key for one in episode.entities],
                    "names": [one.name for one in episode.entities],
                    "labels": [one.label for one in episode.entities],
                },
            )
        if episode.facts:
            facts = episode.facts
            self._transaction.defer(
                _SQL["put_facts"],
                {
                    **values,
                    "subjects": [one.subject for one in facts],
                    "relations": [one.relation for one in facts],
                    "objects": [one.object for one in facts],
                    "slots": [one.slot for one in facts],
                    "facts": [one.text for one in facts],
                    "valid_at_us": [one.valid_at_us for one in facts],
                },
            )

    def _select(self, statement: str, **values: Any) -> Sequence[Any]:
        return self._transaction.execute(_SQL[statement], {**range_values(self._tenant), **values})


def _until(until_us: int | None) -> int:
    return END_OF_TIME_US if until_us is None else until_us

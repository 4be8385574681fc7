"""search_nodes and search_memory_facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.find.meaning import meaning_of
from zibaldone.find.memory import (
    Question,
    people_in,
    query_without,
    search_facts,
    search_nodes,
    text_without,
)
from zibaldone.find.missing import Missing, notes_of, parts_of
from zibaldone.find.parse import checked_query
from zibaldone.limits import MEMORY_ITEMS_DEFAULT, MEMORY_LABELS_MAX, MEMORY_SUMMARY_FACTS
from zibaldone.model.instant import to_iso
from zibaldone.model.memory import Node, StoredFact
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.text.dates import named_dates
from zibaldone.text.query import parse_query
from zibaldone.text.question import event_in
from zibaldone.tools.fields import LeftOut
from zibaldone.tools.memory.fields import (
    AsOf,
    Count,
    FactAnswer,
    GroupIds,
    fact_answer,
    groups_of,
    instant_us,
)
from zibaldone.tools.spec import Arguments, Call, ToolSpec


async def question_of(
    call: Call, text: str, group_ids: list[str], as_of: str | None
) -> tuple[Question, tuple[Missing, ...]]:
    """What is asked, with its vector and that of the event which it names."""
    query, until_us = checked_query(text), instant_us(as_of)
    people = await call.runtime.store.read(
        call.principal.tenant, lambda reader: people_in(reader, text, group_ids, until_us)
    )

    async def read(words: str, query: Query) -> tuple[Question, tuple[Missing, ...]]:
        meant = await meaning_of(
            call.runtime.query_vectors, text_without(words, people), query_without(query, people)
        )
        asked = Question(words, query, meant.meaning, group_ids, until_us, people)
        return asked, meant.missing

    asked, missing = await read(text, query)
    event = event_in(text)
    if event is None or named_dates(event.phrase, 0):  # a date needs no looking up
        return asked, missing
    around, _ = await read(event.phrase, parse_query(event.phrase))
    if event.is_before:
        return replace(asked, before=around), missing
    return replace(asked, after=around), missing


_DOCUMENTS_AT_ONCE = 5
"""Whose facts are read: each may have hundreds, of which a few are shown."""


class SearchNodes(Arguments):
    query: str
    group_ids: GroupIds = None
    max_nodes: Count = MEMORY_ITEMS_DEFAULT
    entity_types: list[str] | None = Field(
        None, max_length=MEMORY_LABELS_MAX, description="Only with one of these labels"
    )
    as_of: AsOf = None


class NodeAnswer(TypedDict):
    uuid: str
    name: str
    labels: list[str]
    created_at: str
    summary: str
    group_id: str
    attributes: dict[str, Any]


class Nodes(TypedDict):
    message: str
    nodes: list[NodeAnswer]
    left_out: NotRequired[LeftOut]
    note: NotRequired[str]


async def nodes(call: Call, given: SearchNodes) -> Nodes:
    asked, missing = await question_of(call, given.query, groups_of(given.group_ids), given.as_of)

    def search(reader: Reader) -> tuple[list[NodeAnswer], tuple[Missing, ...]]:
        labels = given.entity_types or ()
        found, more = search_nodes(reader, asked, limit=given.max_nodes, labels=labels)
        return _node_answers(reader, found, asked.until_us), (*missing, *more)

    answers, absent = await call.runtime.store.read(call.principal.tenant, search)
    answer: Nodes = {
        "message": "Nodes retrieved successfully" if answers else "No relevant nodes found",
        "nodes": answers,
    }
    if absent:
        answer["left_out"] = parts_of(absent)
        answer["note"] = "; ".join(notes_of(absent))
    return answer


def _node_answers(reader: Reader, nodes: Sequence[Node], until_us: int | None) -> list[NodeAnswer]:
    """The summary of a node is what was stated of it last and still holds."""
    telling = [
        reader.memory.stating(
            node.group_id, node.key, limit=MEMORY_SUMMARY_FACTS, until_us=until_us
        )
        for node in nodes
    ]
    documents = list(dict.fromkeys(document_id for listed in telling for document_id in listed))
    keys = {node.key for node in nodes}
    facts: dict[tuple[str, str], list[StoredFact]] = {}
    for start in range(0, len(documents), _DOCUMENTS_AT_ONCE):
        some = documents[start : start + _DOCUMENTS_AT_ONCE]
        for stored in reader.memory.facts_of(some, until_us=until_us):
            if stored.invalid_at_us is None and stored.fact.subject in keys:
                kept = facts.setdefault((stored.document_id, stored.fact.subject), [])
                if len(kept) < MEMORY_SUMMARY_FACTS:
                    kept.append(stored)
    return [
        _node_answer(
            node,
            [stored for document_id in listed for stored in facts.get((document_id, node.key), ())],
        )
        for node, listed in zip(nodes, telling, strict=True)
    ]


def _node_answer(node: Node, facts: Sequence[StoredFact]) -> NodeAnswer:
    return {
        "uuid": node.node_id,
        "name": node.name,
        "labels": ["Entity", *node.labels],
        "created_at": to_iso(node.since_us),
        "summary": " ".join(stored.fact.text for stored in facts[:MEMORY_SUMMARY_FACTS]),
        "group_id": node.group_id,
        "attributes": {"episodes": node.episodes},
    }


NODES = ToolSpec(
    name="search_nodes",
    title="Search entities",
    description="Find entities (people, projects, pages, code) by name or by what is said of them.",
    arguments=SearchNodes,
    result=Nodes,
    effect="read",
    handler=nodes,
)


class SearchFacts(Arguments):
    query: str
    group_ids: GroupIds = None
    max_facts: Count = MEMORY_ITEMS_DEFAULT
    center_node_uuid: str | None = Field(None, description="Only facts that have this node")
    as_of: AsOf = None


class Facts(TypedDict):
    message: str
    facts: list[FactAnswer]
    left_out: NotRequired[LeftOut]
    note: NotRequired[str]


async def facts(call: Call, given: SearchFacts) -> Facts:
    asked, missing = await question_of(call, given.query, groups_of(given.group_ids), given.as_of)

    def search(reader: Reader) -> tuple[list[FactAnswer], tuple[Missing, ...]]:
        found, more = search_facts(
            reader, asked, limit=given.max_facts, about=given.center_node_uuid
        )
        return [fact_answer(stored) for stored in found], (*missing, *more)

    answers, absent = await call.runtime.store.read(call.principal.tenant, search)
    answer: Facts = {
        "message": "Facts retrieved successfully" if answers else "No relevant facts found",
        "facts": answers,
    }
    if absent:
        answer["left_out"] = parts_of(absent)
        answer["note"] = "; ".join(notes_of(absent))
    return answer


FACTS = ToolSpec(
    name="search_memory_facts",
    title="Search facts",
    description=(
        "Find facts: sentences that join two entities, with the time from which they hold and, if "
        "a later one ended them, until when."
    ),
    arguments=SearchFacts,
    result=Facts,
    effect="read",
    handler=facts,
)

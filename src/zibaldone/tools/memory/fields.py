"""Arguments that several memory tools share, and what their answers are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import InvalidArgument
from zibaldone.keep.episodes import group_prefix
from zibaldone.limits import DOCUMENT_ID_BYTES_MAX, MEMORY_GROUPS_MAX, MEMORY_ITEMS_MAX
from zibaldone.model.instant import from_iso, to_iso
from zibaldone.model.memory import GROUP_DEFAULT, MEMORY_PREFIX, StoredFact, node_id

GroupId = Annotated[str | None, Field(description=f"Default: {GROUP_DEFAULT}")]
GroupIds = Annotated[
    Annotated[list[str], Field(max_length=MEMORY_GROUPS_MAX)] | str | None,
    Field(description=f"Default: {GROUP_DEFAULT}"),
]
Count = Annotated[int, Field(ge=1, le=MEMORY_ITEMS_MAX)]
EpisodeId = Annotated[str, Field(min_length=1, max_length=DOCUMENT_ID_BYTES_MAX)]
AsOf = Annotated[
    str | None, Field(description="ISO time: answer from what was known and true then")
]


class Message(TypedDict):
    message: str


class FactAnswer(TypedDict):
    """As Graphiti describes an edge."""

    uuid: str
    group_id: str
    source_node_uuid: str
    target_node_uuid: str
    created_at: str
    name: str
    """The relation."""
    fact: str
    episodes: list[str]
    valid_at: str
    invalid_at: str | None
    expired_at: str | None
    attributes: dict[str, Any]


def groups_of(given: list[str] | str | None) -> list[str]:
    """The names of the groups as they are stored; the default one if none is given."""
    listed = [given] if isinstance(given, str) else given or [GROUP_DEFAULT]
    return list(dict.fromkeys(group_name(group_id) for group_id in listed))


def group_name(given: str | None) -> str:
    return group_prefix(given or GROUP_DEFAULT)[len(MEMORY_PREFIX) : -1]


def instant_us(text: str | None, field: str = "as_of") -> int | None:
    if text is None:
        return None
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{field} is no ISO 8601 time, such as 2026-11-16T09:30:00Z.", field=field
        ) from None


def fact_answer(stored: StoredFact) -> FactAnswer:
    fact = stored.fact
    ended = None if stored.invalid_at_us is None else to_iso(stored.invalid_at_us)
    attributes: dict[str, Any] = {"document_id": stored.document_id}
    if stored.replaced_by is not None:
        attributes["replaced_by"] = stored.replaced_by
        attributes["replaced_in"] = stored.replaced_in
    return {
        "uuid": stored.fact_id,
        "group_id": stored.group_id,
        "source_node_uuid": node_id(stored.group_id, fact.subject),
        "target_node_uuid": node_id(stored.group_id, fact.object),
        "created_at": to_iso(stored.created_at_us),
        "name": fact.relation,
        "fact": fact.text,
        "episodes": [stored.episode_id],
        "valid_at": to_iso(fact.valid_at_us),
        "invalid_at": ended,
        "expired_at": ended,
        "attributes": attributes,
    }

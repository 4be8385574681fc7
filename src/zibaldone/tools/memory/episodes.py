"""add_memory, get_episodes, delete_episode, clear_graph and get_status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from zibaldone.errors import InvalidArgument, NotFound
from zibaldone.keep.episodes import (
    NewEpisode,
    Unchanged,
    adding,
    delete_in_groups,
    delete_with_id,
    document_id_of,
)
from zibaldone.limits import (
    MEMORY_CLEAR_SECONDS_MAX,
    MEMORY_GROUPS_SHOWN_MAX,
    MEMORY_HASH_INLINE_CHARS_MAX,
    MEMORY_ITEMS_DEFAULT,
    MEMORY_RESPONSE_CHARS_MAX,
    TITLE_CHARS_MAX,
)
from zibaldone.model.document import DocumentPart
from zibaldone.model.instant import to_iso
from zibaldone.model.memory import EpisodeHead, place_of
from zibaldone.store.port import Reader, Writer, end_if_cancelled
from zibaldone.text.memory import SOURCE, SOURCE_DESCRIPTION
from zibaldone.tools.memory.fields import (
    Count,
    EpisodeId,
    GroupId,
    GroupIds,
    Message,
    group_name,
    groups_of,
)
from zibaldone.tools.spec import Arguments, Call, ToolSpec

Source = Literal["text", "json", "message"]


class AddMemory(Arguments):
    name: str = Field(min_length=1, max_length=TITLE_CHARS_MAX, description="A title")
    episode_body: str
    group_id: GroupId = None
    source: Source = Field("text", description="message: lines of the form 'Name: text'")
    source_description: str = Field("", max_length=1_000)
    uuid: EpisodeId | None = Field(
        None, description="The same again changes nothing; with another text, it is a new revision"
    )
    reference_time: str | None = Field(
        None,
        validation_alias=AliasChoices("reference_time", "reference_timestamp"),
        description="ISO time of what it says; default: now",
    )


class Added(TypedDict):
    message: str
    uuid: str
    status: Literal["created", "updated", "unchanged"]
    revision: int
    document_id: str


async def add(call: Call, given: AddMemory) -> Added:
    new = NewEpisode(
        given.name,
        given.episode_body,
        group_name(given.group_id),
        given.source,
        given.source_description,
        given.uuid,
        given.reference_time,
    )
    if len(new.body) <= MEMORY_HASH_INLINE_CHARS_MAX:
        document_id = document_id_of(new)
    else:  # it may be made of a hash of the body
        document_id = await asyncio.to_thread(document_id_of, new)
    call.require_document(document_id)
    status: Literal["created", "updated", "unchanged"]
    try:
        document, change = await call.write(
            adding(new, document_id, call.actor, call.runtime.limits)
        )
        status = "created" if change.is_new else "updated"
    except Unchanged as stored:
        document, status = stored.document, "unchanged"
    said = "is stored already" if status == "unchanged" else "stored"
    place = place_of(document_id)
    return {
        "message": f"Episode '{document.title}' {said} in group '{new.group_id}'",
        "uuid": "" if place is None else place[1],
        "status": status,
        "revision": document.revision,
        "document_id": document_id,
    }


ADD = ToolSpec(
    name="add_memory",
    title="Remember something",
    description=(
        "Store an episode: a note, a JSON value or messages. It is stored when this answers, and "
        "found at once."
    ),
    arguments=AddMemory,
    result=Added,
    effect="write",
    handler=add,
    idempotent=True,
    request_bytes_max=None,
)


class GetEpisodes(Arguments):
    group_ids: GroupIds = None
    max_episodes: Count = MEMORY_ITEMS_DEFAULT


class EpisodeAnswer(TypedDict):
    uuid: str
    name: str
    content: str
    created_at: str
    valid_at: str
    source: str
    source_description: str
    group_id: str
    revision: int
    document_id: str
    truncated: bool


class Episodes(TypedDict):
    message: str
    episodes: list[EpisodeAnswer]
    truncated: bool


async def get(call: Call, given: GetEpisodes) -> Episodes:
    group_ids = groups_of(given.group_ids)

    def read(reader: Reader) -> list[EpisodeAnswer]:
        left = MEMORY_RESPONSE_CHARS_MAX
        shown: list[EpisodeAnswer] = []
        for head in reader.memory.latest(group_ids, limit=given.max_episodes):
            part = reader.documents.peek(head.document_id, left)
            if part is not None:
                shown.append(_shown(head, part))
                left -= len(part.beginning)
        return shown

    episodes = await call.read_texts(read, lambda shown: sum(len(one["content"]) for one in shown))
    return {
        "message": "Episodes retrieved successfully" if episodes else "No episodes found",
        "episodes": episodes,
        "truncated": any(one["truncated"] for one in episodes),
    }


def _shown(head: EpisodeHead, part: DocumentPart) -> EpisodeAnswer:
    return {
        "uuid": head.episode_id,
        "name": part.title,
        "content": part.beginning,
        "created_at": to_iso(part.created_at_us),
        "valid_at": to_iso(head.valid_at_us),
        "source": str(part.metadata.get(SOURCE, "text")),
        "source_description": str(part.metadata.get(SOURCE_DESCRIPTION, "")),
        "group_id": head.group_id,
        "revision": part.revision,
        "document_id": head.document_id,
        "truncated": not part.is_whole,
    }


GET = ToolSpec(
    name="get_episodes",
    title="Latest episodes",
    description="The latest episodes of groups, by their own time, latest first.",
    arguments=GetEpisodes,
    result=Episodes,
    effect="read",
    handler=get,
    is_long=True,
)


class DeleteEpisode(Arguments):
    uuid: EpisodeId


async def delete(call: Call, given: DeleteEpisode) -> Message:
    deleted = await in_steps(call, lambda writer: delete_with_id(writer, given.uuid, call.actor))
    if not deleted:
        raise NotFound(f"There is no episode {given.uuid!r}.", uuid=given.uuid)
    return {"message": f"Episode with UUID {given.uuid} deleted successfully"}


DELETE = ToolSpec(
    name="delete_episode",
    title="Forget an episode",
    description="Delete an episode by its uuid. Its history is kept; an operator can restore it.",
    arguments=DeleteEpisode,
    result=Message,
    effect="delete",
    handler=delete,
)


async def in_steps(call: Call, delete_some: Callable[[Writer], int]) -> int:
    """Delete some in each transaction until there are none; how many were deleted."""
    deleted = 0
    while count := await call.runtime.store.write(call.principal.tenant, delete_some):
        deleted += count
        end_if_cancelled()  # a deadline that came while it was written is not lost
    return deleted


class ClearGraph(Arguments):
    group_ids: GroupIds = None


class Cleared(TypedDict):
    message: str
    deleted: int


async def clear(call: Call, given: ClearGraph) -> Cleared:
    group_ids = groups_of(given.group_ids)
    if not group_ids:
        raise InvalidArgument("Name the groups to clear.", field="group_ids")
    deleted = await in_steps(call, lambda writer: delete_in_groups(writer, group_ids, call.actor))
    listed = ", ".join(group_ids)
    return {
        "message": f"Graph data cleared successfully for group IDs: {listed}",
        "deleted": deleted,
    }


CLEAR = ToolSpec(
    name="clear_graph",
    title="Forget groups",
    description="Delete all episodes of groups. Their history is kept; an operator can restore it.",
    arguments=ClearGraph,
    result=Cleared,
    effect="delete",
    handler=clear,
    seconds_max=MEMORY_CLEAR_SECONDS_MAX,
)


class GetStatus(Arguments):
    pass


class Status(TypedDict):
    status: Literal["ok", "error"]
    message: str
    groups: dict[str, int]


async def status(call: Call, _: GetStatus) -> Status:
    def count(reader: Reader) -> tuple[int, int, dict[str, int]]:
        return *reader.memory.totals(), reader.memory.groups(limit=MEMORY_GROUPS_SHOWN_MAX)

    groups, episodes, shown = await call.runtime.store.read(call.principal.tenant, count)
    more = "" if len(shown) == groups else f"; the {len(shown)} largest are listed"
    return {
        "status": "ok",
        "message": (
            f"Zibaldone is running and its store answers: {episodes} episodes in "
            f"{groups} groups{more}"
        ),
        "groups": shown,
    }


STATUS = ToolSpec(
    name="get_status",
    title="Status of the memory",
    description="Whether the memory can be used, and how many episodes each group has.",
    arguments=GetStatus,
    result=Status,
    effect="read",
    handler=status,
)

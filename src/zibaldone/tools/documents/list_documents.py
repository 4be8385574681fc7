"""list_documents: a page of ids in byte order, or of those written last."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, cast

import orjson
from pydantic import AliasChoices, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from zibaldone.errors import InvalidArgument
from zibaldone.keep.reads import Period, list_level, list_page, list_recent
from zibaldone.limits import LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, LIST_OFFSET_MAX
from zibaldone.text import normalize
from zibaldone.tools.fields import instant_us
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class ListDocuments(Arguments):
    prefix: str = Field(
        "",
        validation_alias=AliasChoices("prefix", "path"),
        description="Literal start of the path, e.g. 'notes/'",
    )
    limit: int = Field(LIST_LIMIT_DEFAULT, ge=1, le=LIST_LIMIT_MAX)
    offset: int = Field(0, ge=0)
    cursor: str | None = Field(None, description="next_cursor of the page before; has no cap")
    folders: bool = Field(False, description="One level only, with folders and their counts")
    sort: Literal["path", "recent"] | None = Field(
        None, description="recent: newest first, as with a date; default path"
    )
    updated_after: str | None = Field(None, description="Written then or later, e.g. 2026-01-31")
    updated_before: str | None = None
    count: Annotated[bool, SkipJsonSchema()] = False
    """Asked for by some clients; a full count is not offered, and asking changes nothing."""


class ListedDocument(TypedDict):
    document_id: str
    parent_id: str | None
    title: str
    tags: list[str]
    revision: int
    updated_at: NotRequired[str]
    """In a list by time."""


class ListedFolder(TypedDict):
    prefix: str
    count: int
    """Documents in it and in the folders below it."""


class DocumentList(TypedDict):
    items: list[ListedDocument]
    count: int
    returned_count: int
    truncated: bool
    next_offset: int | None
    next_cursor: NotRequired[str]
    hint: NotRequired[str]
    folders: NotRequired[list[ListedFolder]]


async def handle(call: Call, given: ListDocuments) -> DocumentList:
    if given.offset > LIST_OFFSET_MAX:
        raise InvalidArgument(
            f"offset too large (over {LIST_OFFSET_MAX}): use a narrower prefix, or cursor.",
            field="offset",
            offset_max=LIST_OFFSET_MAX,
        )
    if given.cursor is not None and given.offset:
        raise InvalidArgument("Give offset or cursor, not both.", field="cursor")
    prefix = normalize.prefix(given.prefix)
    period = Period(
        instant_us(given.updated_after, "updated_after"),
        instant_us(given.updated_before, "updated_before"),
    )
    is_recent = given.sort == "recent" or period != Period()
    if is_recent and (given.folders or given.sort == "path"):
        raise InvalidArgument(
            "A list by date is newest first, without folders: leave out sort and folders, or the"
            " dates.",
            field="folders" if given.folders else "sort",
        )
    if given.folders:
        return await _level(call, given, prefix)
    how: dict[str, Any] = {
        "limit": given.limit,
        "offset": given.offset,
        "cursor": given.cursor,
        "bytes_max": call.runtime.limits.list_response_bytes_max,
    }
    if is_recent:
        page = await call.runtime.store.read(
            call.principal.tenant, lambda reader: list_recent(reader, prefix, period, **how)
        )
    else:
        page = await call.runtime.store.read(
            call.principal.tenant, lambda reader: list_page(reader, prefix, **how), is_small=True
        )
    answer: DocumentList = {
        # JSON that the store has written already: making values of it would only cost time.
        "items": cast("list[ListedDocument]", orjson.Fragment(page.items_json)),
        "count": page.count,
        "returned_count": page.count,
        "truncated": page.truncated,
        "next_offset": page.next_offset,
    }
    if page.next_cursor is not None:
        answer["next_cursor"] = page.next_cursor
        if page.truncated and page.next_offset is None and given.cursor is None:
            answer["hint"] = "offset ends here: use next_cursor, or a narrower prefix."
    return answer


async def _level(call: Call, given: ListDocuments, prefix: str) -> DocumentList:
    if given.offset:
        raise InvalidArgument("With folders, pages go on by cursor.", field="offset")
    level = await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: list_level(
            reader,
            prefix,
            limit=given.limit,
            cursor=given.cursor,
            bytes_max=call.runtime.limits.list_response_bytes_max,
        ),
    )
    page = level.page
    answer: DocumentList = {
        "items": cast("list[ListedDocument]", orjson.Fragment(page.items_json)),
        "count": page.count,
        "returned_count": page.count,
        "truncated": page.truncated,
        "next_offset": None,
        "folders": [{"prefix": one.prefix, "count": one.count} for one in level.folders],
    }
    if page.next_cursor is not None:
        answer["next_cursor"] = page.next_cursor
    if page.truncated:
        answer["hint"] = "There is more at this level: use a narrower prefix."
    return answer


TOOL = ToolSpec(
    name="list_documents",
    title="List documents",
    description=(
        "List documents under a path prefix in byte order, or with sort: recent those written last "
        "first. count is the number of items in this page; next_offset (or next_cursor) gives the "
        "next one, null means the end."
    ),
    arguments=ListDocuments,
    result=DocumentList,
    effect="read",
    handler=handle,
)

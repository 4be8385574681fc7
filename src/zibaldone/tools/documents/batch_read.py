"""batch_read: several documents at once."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.errors import NotFound, ResponseTooLarge, ZibaldoneError
from zibaldone.keep.nearest import explained
from zibaldone.keep.reads import preview, whole
from zibaldone.limits import BATCH_PATHS_MAX
from zibaldone.store.port import Reader
from zibaldone.text import normalize
from zibaldone.tools.answer import text_bytes
from zibaldone.tools.documents.fields import WholeDocument, document_info
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_LOOKED_NEAR_MAX = 3
"""Missing documents of one call for which near paths are looked for."""


class BatchRead(Arguments):
    paths: list[str] = Field(min_length=1, max_length=BATCH_PATHS_MAX)
    full: bool = Field(False, description="Whole bodies instead of the first 500 characters")


class ItemRead(WholeDocument):
    path: str
    """As it was asked for."""
    status: Literal["ok"]


class ItemError(TypedDict):
    code: str
    status: int
    message: str
    details: dict[str, Any]


class ItemFailed(TypedDict):
    path: str
    status: Literal["error"]
    error: ItemError


class Batch(TypedDict):
    items: list[ItemRead | ItemFailed]
    count: int
    truncated: bool


async def handle(call: Call, given: BatchRead) -> Batch:
    bytes_max = call.runtime.limits.batch_response_bytes_max

    def read_all(reader: Reader) -> Batch:
        items: list[ItemRead | ItemFailed] = []
        left_bytes = bytes_max
        is_cut = False
        looked_near = 0
        for path in given.paths:
            try:
                item, size_bytes = _item(reader, path, given.full, left_bytes)
            except ZibaldoneError as error:
                if isinstance(error, NotFound) and looked_near < _LOOKED_NEAR_MAX:
                    looked_near += 1
                    error = explained(reader, error)
                items.append({"path": path, "status": "error", "error": _item_error(error)})
                is_cut = is_cut or isinstance(error, ResponseTooLarge)
                continue
            items.append(item)
            left_bytes -= size_bytes
            is_cut = is_cut or item["truncated"]
        return {"items": items, "count": len(items), "truncated": is_cut}

    return await call.read_texts(read_all, _chars)


def _chars(batch: Batch) -> int:
    return sum(len(item["content"]) for item in batch["items"] if item["status"] == "ok")


def _item(reader: Reader, path: str, full: bool, left_bytes: int) -> tuple[ItemRead, int]:
    """The item, and what its content takes in the answer."""
    document_id = normalize.document_id(path, "paths")
    view = whole(reader, document_id) if full else preview(reader, document_id)
    content = view.excerpt.text
    size_bytes = text_bytes(content)
    if size_bytes > left_bytes:
        raise ResponseTooLarge(
            "This document does not fit into the answer any more; read it on its own.",
            document_id=document_id,
        )
    item: ItemRead = {
        "path": path,
        "status": "ok",
        **document_info(view.document),
        "content": content,
        "content_length": view.content_chars,
        "truncated": view.excerpt.truncated,
    }
    return item, size_bytes


def _item_error(error: ZibaldoneError) -> ItemError:
    return {
        "code": error.code,
        "status": error.status,
        "message": error.message,
        "details": dict(error.details),
    }


TOOL = ToolSpec(
    name="batch_read",
    title="Read several documents",
    description="Read 1-20 documents at once; each item is ok or says what is wrong with it.",
    arguments=BatchRead,
    result=Batch,
    effect="read",
    handler=handle,
    is_long=True,
)

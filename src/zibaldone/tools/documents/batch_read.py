"""batch_read: several documents at once."""

from __future__ import annotations

from pydantic import Field

from zibaldone.errors import ResponseTooLarge, ZibaldoneError
from zibaldone.keep.commit import live_document
from zibaldone.keep.reads import preview
from zibaldone.limits import BATCH_PATHS_MAX
from zibaldone.store.port import Reader
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import shown
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec


class BatchRead(Arguments):
    paths: list[str] = Field(min_length=1, max_length=BATCH_PATHS_MAX)
    full: bool = Field(False, description="Whole bodies instead of the first 500 characters")


async def handle(call: Call, given: BatchRead) -> Answer:
    bytes_max = call.runtime.limits.batch_response_bytes_max

    def read_all(reader: Reader) -> Answer:
        items: list[Answer] = []
        left_bytes = bytes_max
        for path in given.paths:
            try:
                item = _item(reader, path, given.full, left_bytes)
                left_bytes -= len(item["content"].encode())
            except ZibaldoneError as error:
                item = {"path": path, "status": "error", "error": error.as_dict()}
            items.append(item)
        is_cut = any(
            item.get("truncated") or item.get("error", {}).get("code") == ResponseTooLarge.code
            for item in items
        )
        return {"items": items, "count": len(items), "truncated": is_cut}

    return await call.runtime.store.read(call.principal.tenant, read_all)


def _item(reader: Reader, path: str, full: bool, left_bytes: int) -> Answer:
    document = live_document(reader, normalize.document_id(path, "paths"))
    part = preview(document.body)
    content = document.body if full else part.text
    if len(content.encode()) > left_bytes:
        raise ResponseTooLarge(
            "This document does not fit into the answer any more; read it on its own.",
            document_id=document.document_id,
        )
    return {
        "path": path,
        "status": "ok",
        **shown(document),
        "content": content,
        "content_length": len(document.body),
        "truncated": part.truncated and not full,
    }


TOOL = ToolSpec(
    name="batch_read",
    title="Read several documents",
    description="Read 1-20 documents at once; each item is ok or says what is wrong with it.",
    arguments=BatchRead,
    effect="read",
    handler=handle,
)

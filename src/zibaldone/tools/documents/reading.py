"""Reading one document without holding up the event loop, however long it is."""

from __future__ import annotations

from zibaldone.keep.commit import live_document
from zibaldone.keep.reads import live_part
from zibaldone.limits import READ_INLINE_CHARS_MAX
from zibaldone.model.document import Document, DocumentPart
from zibaldone.tools.spec import Call


async def read_part(call: Call, document_id: str, chars_max: int) -> DocumentPart:
    """The beginning of a live document. NotFound: there is none."""
    return await call.runtime.store.read(
        call.principal.tenant,
        lambda reader: live_part(reader, document_id, chars_max),
        is_small=True,
    )


async def read_document(call: Call, document_id: str) -> Document:
    """A live document with its whole body. NotFound: there is none."""
    part = await read_part(call, document_id, READ_INLINE_CHARS_MAX)
    if part.is_whole:
        return part.as_document()
    return await call.runtime.store.read(
        call.principal.tenant, lambda reader: live_document(reader, document_id)
    )

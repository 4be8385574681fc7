"""get_document: look at a document, or page through it."""

from __future__ import annotations

from typing import NotRequired

from pydantic import Field

from zibaldone.find.related import Related, related
from zibaldone.keep.commit import live_document
from zibaldone.keep.reads import Range, excerpt, preview
from zibaldone.limits import READ_CHARS_MAX, READ_LINES_MAX
from zibaldone.model.document import Document
from zibaldone.text import normalize
from zibaldone.tools.documents.fields import DocumentPath, WholeDocument, document_info
from zibaldone.tools.spec import Arguments, Call, ToolSpec


class GetDocument(Arguments):
    path: DocumentPath
    from_line: int | None = Field(None, ge=1, description="Read a part: first line")
    line_count: int | None = Field(None, ge=1, le=READ_LINES_MAX)
    from_char: int | None = Field(None, ge=0, description="Or: first character")
    char_count: int | None = Field(None, ge=1, le=READ_CHARS_MAX)
    related: bool = Field(True, description="Add up to 3 related documents")


class DocumentPart(WholeDocument):
    next_line: NotRequired[int]
    next_char: NotRequired[int]
    related: NotRequired[list[Related]]


async def handle(call: Call, given: GetDocument) -> DocumentPart:
    document_id = normalize.document_id(given.path)
    tenant, store = call.principal.tenant, call.runtime.store
    document = await store.read(
        tenant, lambda reader: live_document(reader, document_id), is_small=True
    )
    answer = _part(document, given)
    if given.related:
        answer["related"] = await store.read(tenant, lambda reader: related(reader, document))
    return answer


def _part(document: Document, given: GetDocument) -> DocumentPart:
    wanted = Range(given.from_line, given.line_count, given.from_char, given.char_count)
    is_whole = wanted == Range()
    part = preview(document.body) if is_whole else excerpt(document.body, wanted)
    answer: DocumentPart = {
        **document_info(document),
        "content": part.text,
        "content_length": len(document.body),
        "truncated": part.truncated,
    }
    if part.next_line is not None:
        answer["next_line"] = part.next_line
    if part.next_char is not None:
        answer["next_char"] = part.next_char
    return answer


TOOL = ToolSpec(
    name="get_document",
    title="Look at a document",
    description=(
        "Read a document: its first 500 characters with truncated and content_length, and related "
        "documents; or any range of lines or characters."
    ),
    arguments=GetDocument,
    result=DocumentPart,
    effect="read",
    handler=handle,
    is_missing_an_answer=True,
)

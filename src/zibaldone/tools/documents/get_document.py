"""get_document: look at a document, or page through it."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.find.related import Related, related
from zibaldone.keep.reads import Range, excerpt, preview
from zibaldone.limits import READ_CHARS_MAX, READ_LINES_MAX
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


class PartExtras(TypedDict, total=False):
    next_line: int
    """from_line of what follows."""
    next_char: int
    """from_char of what follows."""
    read_on: str
    related: list[Related]


class DocumentPart(WholeDocument, PartExtras):
    pass


async def handle(call: Call, given: GetDocument) -> DocumentPart:
    document_id = normalize.document_id(given.path)
    tenant, store = call.principal.tenant, call.runtime.store
    wanted = Range(given.from_line, given.line_count, given.from_char, given.char_count)
    if wanted == Range():
        view = await store.read(tenant, lambda reader: preview(reader, document_id), is_small=True)
    else:
        view = await store.read(tenant, lambda reader: excerpt(reader, document_id, wanted))
    document, part = view.document, view.excerpt
    extras: PartExtras = {}
    if part.next_line is not None:
        extras["next_line"] = part.next_line
    if part.next_char is not None:
        extras["next_char"] = part.next_char
    if part.next_line is not None:
        extras["read_on"] = f"get_document with from_line {part.next_line}"
    elif part.next_char is not None:
        extras["read_on"] = f"get_document with from_char {part.next_char}"
    if given.related:
        extras["related"] = await store.read(tenant, lambda reader: related(reader, document))
    return {
        **document_info(document),
        "content": part.text,
        "content_length": view.content_chars,
        "truncated": part.truncated,
        **extras,
    }


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

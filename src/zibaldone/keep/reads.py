"""Read documents: one, a part of one, or a page of a list."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import orjson

from zibaldone.errors import InvalidArgument, NotFound, ResponseTooLarge
from zibaldone.keep.commit import live_document
from zibaldone.limits import (
    CURSOR_CHARS_MAX,
    LIST_FOLDERS_MAX,
    LIST_OFFSET_MAX,
    READ_CHARS_MAX,
    READ_CUT_CHARS,
    READ_LINES_MAX,
)
from zibaldone.model.document import DocumentFields, DocumentPart, FolderCount, RecentHead
from zibaldone.model.instant import to_iso
from zibaldone.model.value import value
from zibaldone.store.port import Listing, Reader

_UTF8_BYTES_MAX = 4
"""Of one character."""

_TIME_MAX = 2**62

_BLOCK_CHARS = 4_096
"""In which line ends are counted at once."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a body, by lines (from 1) or by characters (from 0)."""

    from_line: int | None = None
    line_count: int | None = None
    from_char: int | None = None
    char_count: int | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    truncated: bool
    """There is more after it."""
    next_line: int | None = None
    next_char: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a document."""

    document: DocumentFields
    content_chars: int
    """How long the whole body is."""
    excerpt: Excerpt


def preview(reader: Reader, document_id: str) -> View:
    """The beginning, at the same small cost for a body of any length."""
    part = live_part(reader, document_id, READ_CUT_CHARS)
    is_cut = not part.is_whole
    next_char = len(part.beginning) if is_cut else None
    return View(part, part.content_chars, Excerpt(part.beginning, is_cut, next_char=next_char))


def whole(reader: Reader, document_id: str) -> View:
    document = live_document(reader, document_id)
    return View(document, len(document.body), Excerpt(document.body, truncated=False))


def excerpt(reader: Reader, document_id: str, wanted: Range) -> View:
    document = live_document(reader, document_id)
    return View(document.fields(), len(document.body), cut_out(document.body, wanted))


def live_part(reader: Reader, document_id: str, chars_max: int) -> DocumentPart:
    """The beginning of a document, however long it is, at the same small cost."""
    part = reader.documents.peek(document_id, chars_max)
    if part is None or not part.is_live:
        raise NotFound(f"There is no document {document_id!r}.", document_id=document_id)
    return part


def cut_out(body: str, wanted: Range) -> Excerpt:
    by_lines = wanted.from_line is not None or wanted.line_count is not None
    by_chars = wanted.from_char is not None or wanted.char_count is not None
    if by_lines and by_chars:
        raise InvalidArgument("Ask for lines or for characters, not both.", field="from_char")
    if by_lines:
        return _lines(body, wanted.from_line or 1, wanted.line_count or READ_LINES_MAX)
    start = wanted.from_char or 0
    end = start + min(wanted.char_count or READ_CHARS_MAX, READ_CHARS_MAX)
    more = end < len(body)
    return Excerpt(body[start:end], more, next_char=end if more else None)


def _lines(body: str, first: int, count: int) -> Excerpt:
    count = min(count, READ_LINES_MAX)
    start = _line_start(body, first)
    if start is None:
        return Excerpt("", truncated=False)
    after = _line_start(body, count + 1, start)
    more = after is not None
    text = body[start:] if after is None else body[start : after - 1]
    if len(text) > READ_CHARS_MAX:
        raise ResponseTooLarge(
            f"These lines have {len(text)} characters; {READ_CHARS_MAX} are allowed. "
            "Ask for fewer lines, or page by characters.",
            chars_max=READ_CHARS_MAX,
        )
    return Excerpt(text, more, next_line=first + count if more else None)


def _line_start(body: str, number: int, at: int = 0) -> int | None:
    """Where the line of that number begins, counted from the one at `at`; None: there is none.

    Block by block: a body may have ten million lines, and most of them are not asked for.
    """
    left = number - 1
    while left > 0:
        block = body.count("\n", at, at + _BLOCK_CHARS)
        if block < left and at + _BLOCK_CHARS < len(body):
            left -= block
            at += _BLOCK_CHARS
            continue
        end = body.find("\n", at)
        if end < 0:
            return None
        left -= 1
        at = end + 1
    return at


@value
class Page:
    items_json: str
    count: int
    truncated: bool
    """The bytes allowed or the largest offset cut the page or the way to the next one."""
    next_offset: int | None
    next_cursor: str | None


def list_page(
    reader: Reader, prefix: str, *, limit: int, offset: int, cursor: str | None, bytes_max: int
) -> Page:
    after = None if cursor is None else _read_cursor(cursor, prefix)
    listing = reader.documents.listing(prefix, after=after, offset=offset, limit=limit)
    page = _cut(listing, bytes_max)
    count, has_more = page.count, page.has_more
    next_offset = offset + count if has_more and cursor is None else None
    beyond = next_offset is not None and next_offset > LIST_OFFSET_MAX
    return Page(
        page.to_json(),
        count,
        truncated=beyond or (page is not listing and count < listing.count),
        next_offset=None if beyond else next_offset,
        next_cursor=_write_cursor(prefix, page.last_id) if has_more else None,
    )


@dataclass(frozen=True, slots=True)
class Period:
    """When a document was written last."""

    since_us: int | None = None
    until_us: int | None = None
    """Before this."""


def list_recent(
    reader: Reader,
    prefix: str,
    period: Period,
    *,
    limit: int,
    offset: int,
    cursor: str | None,
    bytes_max: int,
) -> Page:
    """The newest first, each with its time."""
    heads = reader.documents.recent(
        prefix,
        since_us=period.since_us,
        until_us=period.until_us,
        before=None if cursor is None else _read_recent_cursor(cursor, prefix),
        offset=offset,
        limit=limit + 1,
    )
    items: list[bytes] = []
    left_bytes = bytes_max
    for head in heads[:limit]:
        items.append(orjson.dumps(_recent_item(head)))
        left_bytes -= len(items[-1]) + 1
        if left_bytes < 0:
            items.pop()
            break
    count = len(items)
    if heads and not count:
        raise _nothing_fits(bytes_max)
    has_more = len(heads) > count
    next_offset = offset + count if has_more and cursor is None else None
    beyond = next_offset is not None and next_offset > LIST_OFFSET_MAX
    last = heads[count - 1] if count else None
    return Page(
        f"[{b','.join(items).decode()}]",
        count,
        truncated=beyond or count < min(limit, len(heads)),
        next_offset=None if beyond else next_offset,
        next_cursor=_write_recent_cursor(prefix, last) if last and has_more else None,
    )


def _recent_item(head: RecentHead) -> dict[str, object]:
    return {
        "document_id": head.document_id,
        "parent_id": head.parent_id,
        "title": head.title,
        "tags": head.tags,
        "revision": head.revision,
        "updated_at": to_iso(head.updated_at_us),
    }


@value
class Level:
    """What is directly under a prefix."""

    folders: list[FolderCount]
    """On the first page only."""
    page: Page


def list_level(
    reader: Reader, prefix: str, *, limit: int, cursor: str | None, bytes_max: int
) -> Level:
    """Folders with counts, and the documents beside them."""
    after = None if cursor is None else _read_cursor(cursor, prefix)
    folders: list[FolderCount] = []
    if cursor is None:
        folders = reader.documents.folders(prefix, limit=LIST_FOLDERS_MAX + 1)
    heads = reader.documents.heads_here(prefix, after=after, limit=limit + 1)
    shown, left_bytes = _fitting(folders[:LIST_FOLDERS_MAX], bytes_max)
    is_cut = len(shown) < len(folders)
    listing = Listing(heads[:limit], has_more=len(heads) > limit)
    page = _cut(listing, left_bytes) if heads and not is_cut else Listing((), bool(heads))
    cut_short = is_cut or page.count < listing.count
    return Level(
        shown,
        Page(
            page.to_json(),
            page.count,
            truncated=cut_short,
            next_offset=None,
            next_cursor=_write_cursor(prefix, page.last_id or prefix) if page.has_more else None,
        ),
    )


def _fitting(folders: list[FolderCount], bytes_max: int) -> tuple[list[FolderCount], int]:
    """As many folders as fit into half of the answer, and the bytes that are left."""
    left_bytes = bytes_max
    for position, folder in enumerate(folders):
        size_bytes = len(orjson.dumps(folder)) + 1
        if left_bytes - size_bytes < bytes_max // 2:
            return folders[:position], left_bytes
        left_bytes -= size_bytes
    return folders, left_bytes


def _cut(listing: Listing, bytes_max: int) -> Listing:
    """As much of the page as an answer of that size can hold."""
    text = listing.to_json()
    if len(text) * _UTF8_BYTES_MAX <= bytes_max or len(text.encode()) <= bytes_max:
        return listing
    heads = listing.heads
    kept, size_bytes = 0, 0
    for head in heads:
        size_bytes += len(orjson.dumps(head)) + 1
        if size_bytes > bytes_max:
            break
        kept += 1
    if kept == 0:
        raise _nothing_fits(bytes_max)
    return Listing(heads[:kept], has_more=listing.has_more or kept < len(heads))


def _nothing_fits(bytes_max: int) -> ResponseTooLarge:
    return ResponseTooLarge(f"Not even one item fits into {bytes_max} bytes.", bytes_max=bytes_max)


def _write_cursor(prefix: str, last_id: str | None) -> str:
    return _encoded([prefix, last_id])


def _read_cursor(cursor: str, prefix: str) -> str:
    made_for, *rest = _decoded(cursor)
    if len(rest) != 1 or not isinstance(rest[0], str):
        raise _strange_cursor()
    _require_prefix(made_for, prefix)
    return rest[0]


def _write_recent_cursor(prefix: str, last: RecentHead) -> str:
    return _encoded([prefix, last.updated_at_us, last.document_id])


def _read_recent_cursor(cursor: str, prefix: str) -> tuple[int, str]:
    made_for, *rest = _decoded(cursor)
    if len(rest) != 2 or type(rest[0]) is not int or not isinstance(rest[1], str):
        raise _strange_cursor()
    _require_prefix(made_for, prefix)
    if not -_TIME_MAX < rest[0] < _TIME_MAX:
        raise _strange_cursor()
    return rest[0], rest[1]


def _encoded(values: list[object]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(values)).rstrip(b"=").decode()


def _decoded(cursor: str) -> list[object]:
    try:
        if len(cursor) > CURSOR_CHARS_MAX:  # before it is decoded: it may hold any JSON
            raise ValueError
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        values = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(values, list) or not values:
            raise TypeError
    except (ValueError, TypeError, binascii.Error, UnicodeEncodeError):
        raise _strange_cursor() from None
    return values


def _require_prefix(made_for: object, prefix: str) -> None:
    if made_for != prefix:
        raise InvalidArgument("The cursor was made for another prefix.", field="cursor")


def _strange_cursor() -> InvalidArgument:
    return InvalidArgument(
        "The cursor is not one of ours; take it from next_cursor unchanged.", field="cursor"
    )

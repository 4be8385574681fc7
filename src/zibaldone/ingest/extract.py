"""A file's bytes to the text of a document: Markdown where the format has structure.

The bytes come from strangers. Whatever they are, the result is text or one of our errors: the
libraries' own exceptions stop here, and sizes are checked before anything is unpacked. Parsers can
still be slow or crash, so `convert` runs this in a child process.
"""

from __future__ import annotations

import codecs
import io
import mimetypes
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import PurePosixPath
from time import process_time
from typing import Any

from zibaldone import extras
from zibaldone.errors import (
    InvalidArgument,
    LimitExceeded,
    PayloadTooLarge,
    ZibaldoneError,
)
from zibaldone.ingest.encodings import (
    decode_damaged,
    detect,
    is_utf8,
    marked_encoding,
    may_be_japanese_mail,
)
from zibaldone.ingest.html import Page, page_to_markdown
from zibaldone.ingest.notebook import notebook_to_markdown
from zibaldone.ingest.org import org_to_markdown
from zibaldone.ingest.rst import rst_to_markdown
from zibaldone.limits import (
    ARCHIVE_ENTRIES_MAX,
    DOCX_XML_BYTES_MAX,
    EXTRACT_UNPACKED_BYTES_MAX,
    PDF_PAGES_MAX,
    TITLE_CHARS_MAX,
)
from zibaldone.model.extracted import Extracted
from zibaldone.text.title import title_of

MARKDOWN = "text/markdown"
PLAIN = "text/plain"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
RST = "text/x-rst"
ORG = "text/x-org"
NOTEBOOK = "application/x-ipynb+json"
READABLE = "text, Markdown, source code, reStructuredText, Org, notebooks, HTML, PDF and DOCX"

_MARKUP: Mapping[str, Callable[[str], str]] = {
    RST: rst_to_markdown,
    ORG: org_to_markdown,
    NOTEBOOK: notebook_to_markdown,
}
"""Texts in another markup than Markdown, and what converts them."""
_CONVERTED = frozenset({HTML, PDF, DOCX, *_MARKUP})

_KIND_OF_MIME = {
    "application/xhtml+xml": HTML,
    "application/x-pdf": PDF,
    "text/x-markdown": MARKDOWN,
    "text/org": ORG,
    "text/prs.fallenstein.rst": RST,
}
_UNREADABLE_MAGIC = {
    b"\xd0\xcf\x11\xe0": "an Office file in the old binary form, or protected by a password",
    b"{\\rtf": "an RTF file",
}
_ZIP_MAGIC = b"PK\x03\x04"
_XML_PREFIX_BYTES = 64
_BINARY_FAMILIES = ("image/", "audio/", "video/", "font/", "model/")
_TEXT_APPLICATIONS = frozenset(
    f"application/{name}"
    for name in ("ecmascript", "javascript", "json", "sql", "toml", "x-sh", "xml", "yaml")
)

# The interpreter's own table, without the machine's files: the same answer everywhere.
_MIME_OF_SUFFIX = dict(mimetypes.MimeTypes().types_map[True]) | {
    ".adoc": "text/x-asciidoc",
    ".cpp": "text/x-c++",
    ".cs": "text/x-csharp",
    ".docx": DOCX,
    ".go": "text/x-go",
    ".hpp": "text/x-c++",
    ".java": "text/x-java",
    ".js": "text/javascript",
    ".jsonl": "application/jsonl",
    ".kt": "text/x-kotlin",
    ".lua": "text/x-lua",
    ".markdown": MARKDOWN,
    ".md": MARKDOWN,
    ".mdx": MARKDOWN,
    ".mjs": "text/javascript",
    ".ipynb": NOTEBOOK,
    ".org": ORG,
    ".php": "text/x-php",
    ".pyi": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".rest": RST,
    ".rst": RST,
    ".scala": "text/x-scala",
    ".sh": "text/x-sh",
    ".sql": "text/x-sql",
    ".swift": "text/x-swift",
    ".tex": "text/x-tex",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",  # elsewhere a video
    ".tsx": "text/x-typescript",
    ".xhtml": HTML,
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:+-]+)", re.ASCII | re.IGNORECASE)
_META_CHARSET_BYTES = 1024
"""HTML asks for its encoding to be declared within these."""

# Python's other codecs are not character sets of the web, and some are slow or lossy.
_CHARSET_NAME = re.compile(
    r"utf-8|utf-16(-[bl]e)?|cp(125\d|866|874|932|949)|iso8859-\d+|koi8-[ru]|mac-\w+"
    r"|shift_jis|euc_(jp|kr)|iso2022_jp|gb2312|gbk|gb18030|big5(hkscs)?"
)
# Servers send these as a default for whatever they have, and mean Windows-1252 when they mean it.
_UNRELIABLE_CHARSETS = frozenset({"ascii", "iso8859-1"})


def extract(
    data: bytes,
    *,
    name: str,
    mime: str | None = None,
    unpacked_bytes_max: int = EXTRACT_UNPACKED_BYTES_MAX,
    cpu_seconds_max: float = inf,
) -> Extracted:
    """Read a file; `mime` may be a whole Content-Type and counts for more than the bytes do.

    `cpu_seconds_max` is looked at between the pages of a PDF; the other formats end by their size.
    """
    for magic, what in _UNREADABLE_MAGIC.items():
        if data.startswith(magic):
            raise InvalidArgument(f"This is {what}; save it as a plain .docx.", field="source")
    kind = _kind(data, name, mime)
    if kind == PDF:
        text, title = _read_pdf(data, unpacked_bytes_max, cpu_seconds_max)
        kind = PLAIN
    elif kind in (DOCX, HTML):
        page = _read_docx(data, unpacked_bytes_max) if kind == DOCX else _read_html(data, mime)
        text, title = page.text, page.title
        kind = MARKDOWN
    elif kind in _MARKUP:
        with _damage_refused("file"):
            text = _require_text(_MARKUP[kind](_decode(data, mime or "")), "The file has no text.")
        title = title_of(text, MARKDOWN)
        kind = MARKDOWN
    else:
        text = _decode(data, mime or "")
        title = title_of(text, kind)
    stem = PurePosixPath(name.replace("\\", "/")).stem
    return Extracted(text=text, title=_one_line(title) or _one_line(stem) or "Untitled", mime=kind)


def is_plain_text(data: bytes, *, name: str, mime: str | None = None) -> bool:
    """Whether the file is UTF-8 text as it stands, so that nothing has to be parsed or guessed.

    Raises InvalidArgument for a kind that is never read.
    """
    if data.startswith((_ZIP_MAGIC, *_UNREADABLE_MAGIC)):
        return False
    return _kind(data, name, mime) not in _CONVERTED and is_utf8(data)


def _kind(data: bytes, name: str, mime: str | None) -> str:
    declared = (mime or "").partition(";")[0].strip().lower()
    declared = _KIND_OF_MIME.get(declared, declared)
    by_suffix = _MIME_OF_SUFFIX.get(PurePosixPath(name).suffix.lower(), "")
    by_suffix = _KIND_OF_MIME.get(by_suffix, by_suffix)
    if declared == PLAIN and _is_text(by_suffix) and by_suffix != HTML:
        return by_suffix  # servers call any text plain; the name says which
    for kind in _candidates(declared, data, by_suffix):
        if kind in _CONVERTED or _is_text(kind):
            return kind
        if kind.startswith(_BINARY_FAMILIES):
            raise InvalidArgument(
                f"{kind} cannot be turned into text; {READABLE} can.", field="source", mime=kind
            )
    if data.startswith(_ZIP_MAGIC):
        raise InvalidArgument(f"This is a zip archive; {READABLE} can be read.", field="source")
    beginning = data[:_META_CHARSET_BYTES].lstrip().lower()
    return HTML if beginning.startswith((b"<!doctype html", b"<html")) else PLAIN


def _candidates(declared: str, data: bytes, by_suffix: str) -> Iterator[str]:
    yield declared
    if data[:_META_CHARSET_BYTES].lstrip().startswith(b"%PDF-"):
        yield PDF
    if data.startswith(_ZIP_MAGIC):
        with _damage_refused("zip archive"), _open_archive(data) as archive:
            named = archive.namelist()
        if "word/document.xml" in named:
            yield DOCX
    yield by_suffix


def _is_text(mime: str) -> bool:
    return (
        mime.startswith("text/")
        or mime in _TEXT_APPLICATIONS
        or mime.endswith(("+json", "+xml", "+yaml", "/jsonl"))
    )


def _decode(data: bytes, declared: str) -> str:
    text = _decoded(data, declared)
    if "\0" in text:
        position = text.index("\0")
        raise InvalidArgument(
            f"The file is binary, not text: character {position} is NUL. {READABLE} can be read.",
            field="source",
            position=position,
        )
    return _with_plain_newlines(text.removeprefix("\ufeff"))


def _decoded(data: bytes, declared: str) -> str:
    """By its byte order mark, else as declared, else as UTF-8, else as what it looks like."""
    encoding = marked_encoding(data) or _declared_encoding(data, declared) or "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as problem:
        error = problem
    else:
        if "\0" not in text and not may_be_japanese_mail(data):
            return text
        detected = detect(data)
        return text if detected is None else data.decode(detected)
    if encoding == "utf-8" and (damaged := decode_damaged(data)) is not None:
        return damaged
    detected = detect(data)
    if detected is not None:
        return data.decode(detected)
    raise InvalidArgument(
        f"The file is binary, or text in an unknown encoding: it is not {encoding}, since the byte"
        f" 0x{data[error.start]:02x} at position {error.start} has no meaning there, and looks like"
        f" no other. {READABLE} can be read.",
        field="source",
        encoding=encoding,
        position=error.start,
    )


def _declared_encoding(data: bytes, declared: str) -> str | None:
    charset = _CHARSET.search(declared)
    if charset is None:
        return None
    try:
        encoding = codecs.lookup(charset[1]).name
    except LookupError:
        encoding = ""
    if encoding in _UNRELIABLE_CHARSETS:
        return "utf-8" if is_utf8(data) else "cp1252"
    if encoding.startswith("utf-16") and b"\0" not in data:
        return "utf-8"  # a page that was converted, and its declaration was not
    if not _CHARSET_NAME.fullmatch(encoding):
        raise InvalidArgument(
            f"The character set {charset[1]!r} of the file is not supported; save it as UTF-8.",
            field="source",
        )
    return encoding


def _read_html(data: bytes, mime: str | None) -> Page:
    declared = (mime or "") + "\n" + data[:_META_CHARSET_BYTES].decode("latin-1")
    with _damage_refused("HTML page"):
        page = page_to_markdown(_decode(data, declared))
    return Page(_require_text(page.text, "The page has no text; scripts may draw it."), page.title)


def _read_docx(data: bytes, unpacked_bytes_max: int) -> Page:
    mammoth = extras.require("ingest", "mammoth")
    with _damage_refused("Word file"):
        with _open_archive(data) as archive:
            _refuse_bomb(archive, unpacked_bytes_max)
        converted = mammoth.convert_to_html(
            io.BytesIO(data),
            style_map="p[style-name='Title'] => h1:fresh",
            include_embedded_style_map=False,
            # Pictures are not opened: their bytes are no text, and a link may name any file.
            convert_image=lambda image: [mammoth.html.text(image.alt_text or "")],
        )
        page = page_to_markdown(converted.value)
    return Page(_require_text(page.text, "The Word file has no text."), page.title)


def _read_pdf(data: bytes, text_bytes_max: int, cpu_seconds_max: float) -> tuple[str, str]:
    pypdf = extras.require("ingest", "pypdf")
    deadline_s = process_time() + cpu_seconds_max
    with _damage_refused("PDF"):
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted:
            raise InvalidArgument(
                "The PDF is encrypted; save it without a password first.", field="source"
            )
        pages_count = len(reader.pages)
        if pages_count > PDF_PAGES_MAX:
            raise LimitExceeded(
                f"The PDF has {pages_count} pages; {PDF_PAGES_MAX} are read at most.",
                pages_max=PDF_PAGES_MAX,
            )
        pages: list[str] = []
        remaining_bytes = text_bytes_max
        for page in reader.pages:
            if process_time() > deadline_s:
                raise LimitExceeded(
                    f"{len(pages)} of the PDF's {pages_count} pages were read in"
                    f" {cpu_seconds_max:.3g} seconds. Split it, or save it as text or Markdown.",
                    cpu_seconds_max=cpu_seconds_max,
                )
            pages.append(page.extract_text().strip())
            remaining_bytes -= len(pages[-1])
            if remaining_bytes < 0:
                raise _too_large("The text of the PDF", text_bytes_max)
    text = _require_text(
        "\n\n".join(filter(None, pages)),
        f"The PDF has {pages_count} pages and no text, only images; run OCR on it first.",
    )
    return text, _pdf_title(reader) or text.partition("\n")[0]


def _pdf_title(reader: Any) -> str:
    try:
        return str(reader.metadata.title or "").strip() if reader.metadata else ""
    except Exception:
        return ""


def _open_archive(data: bytes) -> zipfile.ZipFile:
    # Counted by signature: reading the directory would already build an object for each entry.
    if data.count(b"PK\x01\x02") > ARCHIVE_ENTRIES_MAX:
        raise LimitExceeded(
            f"The archive has more than {ARCHIVE_ENTRIES_MAX} entries.",
            entries_max=ARCHIVE_ENTRIES_MAX,
        )
    return zipfile.ZipFile(io.BytesIO(data))


def _refuse_bomb(archive: zipfile.ZipFile, unpacked_bytes_max: int) -> None:
    """Declared sizes may lie, so entries are read by length, which only deflate bounds exactly."""
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > unpacked_bytes_max:
        raise _too_large("The unpacked file", unpacked_bytes_max)
    remaining_bytes = DOCX_XML_BYTES_MAX
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidArgument(
                "The Word file is compressed in a way the format forbids.", field="source"
            )
        with archive.open(entry) as part:
            beginning = part.read(_XML_PREFIX_BYTES)
            # Any entry may be named as a part of the text; XML is known by its first character.
            if beginning.lstrip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe")[:1] not in (b"<", b""):
                continue
            remaining_bytes -= entry.file_size
            if remaining_bytes < 0:
                raise _too_large("The XML of the Word file", DOCX_XML_BYTES_MAX)
            xml = beginning + part.read(entry.file_size)
        if b"<!DOCTYPE" in xml.replace(b"\0", b""):
            raise InvalidArgument(
                "The Word file declares a document type, which the format forbids.", field="source"
            )


def _too_large(what: str, bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"{what} has more than {bytes_max} bytes.", bytes_max=bytes_max)


@contextmanager
def _damage_refused(what: str) -> Iterator[None]:
    try:
        yield
    except (ZibaldoneError, MemoryError):
        raise
    except Exception as error:
        # The parsers raise whatever the bytes led them to: KeyError, zlib.error, RecursionError…
        raise InvalidArgument(
            f"The {what} cannot be read: it is damaged, or not what it is said to be.",
            field="source",
            reason=type(error).__name__,
        ) from error


def _require_text(text: str, otherwise: str) -> str:
    """The text without what cannot be stored; InvalidArgument with `otherwise` if none is left."""
    text = _with_plain_newlines(_without_unstorable(text)).strip()
    if not text:
        raise InvalidArgument(otherwise, field="source")
    return text


def _with_plain_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_unstorable(text: str) -> str:
    """Without NUL, and with surrogates paired or replaced: fonts and `&#xD800;` give any number."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _one_line(title: str) -> str:
    return " ".join(_without_unstorable(title[: 2 * TITLE_CHARS_MAX]).split())[:TITLE_CHARS_MAX]

"""Files to ingest: sound, odd, damaged and hostile ones, each made from a short recipe."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Recipe = dict[str, Any]

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_CONTENT_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(8))
    + "]>"
)
_TAGS = (
    "p",
    "b",
    "div",
    "table",
    "tr",
    "td",
    "ul",
    "ol",
    "li",
    "a",
    "pre",
    "h1",
    "blockquote",
    "x",
)
_PIECES = (
    "text ", "<!--", "-->", "<![CDATA[", "&amp;", "&#x110000;", "&#0;", "&notaname;", "<", ">",
    "<script>", "</script>", "<style>", "<title>a</title>", "<meta charset=utf-7>", "<br>", "\0",
    "<a href='javascript:x'>", "<img src=x alt='", "<td colspan=9999999>", "<ol start=99999999>",
    "<svg><math>", "</p>", "</table>", "<plaintext>", "\r", "<a b=", "'\"", "<p " + "a=b " * 40,
)  # fmt: skip


def recipe(chance: random.Random, size: Callable[[], int]) -> Recipe:
    made: Recipe = {
        "form": chance.choice(("html", "html", "docx", "docx", "pdf", "pdf", "text", "bytes")),
        "seed": chance.randrange(2**32),
        "size": size(),
        "trick": chance.randrange(8),
    }
    if chance.random() < 0.3:
        made["suffix"] = chance.choice(("html", "docx", "pdf", "txt", "md", "json", "png", ""))
    if chance.random() < 0.25:
        made["cut"] = chance.random()
    if chance.random() < 0.25:
        made["flips"] = chance.choice((1, 3, 30))
    return made


def write(recipe: Recipe, folder: str) -> str:
    """Make the file; its path, which is the same for every case: they come one at a time."""
    suffix = recipe.get(
        "suffix", {"text": "txt", "bytes": "bin"}.get(recipe["form"], recipe["form"])
    )
    file = Path(folder) / f"{recipe['seed']:08x}.{suffix}"
    file.write_bytes(data_of(recipe))
    return str(file)


def data_of(recipe: Recipe) -> bytes:
    chance = random.Random(recipe["seed"])
    data = _FORMS[recipe["form"]](chance, recipe["size"], recipe["trick"])
    if "cut" in recipe:
        data = data[: int(len(data) * recipe["cut"])]
    if "flips" in recipe and data:
        changed = bytearray(data)
        for _ in range(recipe["flips"]):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        data = bytes(changed)
    return data


def _html(chance: random.Random, size: int, trick: int) -> bytes:
    match trick:
        case 0:
            tag = chance.choice(_TAGS)
            text = f"<{tag}>" * size + "x"
        case 1:
            text = chance.choice(_PIECES) * size
        case 2:
            text = "<table>" + "<tr><td>a<td>b</tr>" * size
        case 3:
            text = "<ol>" + "<li>a" * size
        case 4:
            text = f"<p>{' ' * size}x{chr(10) * size}"
        case _:
            parts = []
            for _ in range(min(size, 2_000)):
                if chance.random() < 0.5:
                    parts.append(f"<{chance.choice(('', '/'))}{chance.choice(_TAGS)}>")
                else:
                    parts.append(chance.choice(_PIECES))
            text = "".join(parts)
    head = chance.choice(
        ("", "<!doctype html>", "<html><head><meta charset='shift_jis'>", "\ufeff")
    )
    charset = chance.choice(("utf-8", "utf-8", "utf-16", "latin-1", "cp1252"))
    return (head + text).encode(charset, "replace")


def _docx(chance: random.Random, size: int, trick: int) -> bytes:
    paragraph = "<w:p><w:r><w:t>text</w:t></w:r></w:p>"
    body, doctype = paragraph * min(size, 5_000), '<?xml version="1.0"?>'
    match trick:
        case 0:
            body = "<w:tbl><w:tr><w:tc>" * size + paragraph + "</w:tc></w:tr></w:tbl>" * size
        case 1:
            doctype, body = _LAUGHS, f"<w:p><w:r><w:t>&{chance.choice('bdhi')};</w:t></w:r></w:p>"
        case 2:
            body = f"<w:p><w:r><w:t>{'x' * size}</w:t></w:r></w:p>" * 10
        case 3:
            body = '<w:p><w:hyperlink r:id="none"><w:r><w:t>a</w:t></w:r></w:hyperlink></w:p>' * 5
        case 4:
            body = "<w:p><w:r>" + "<w:b/>" * size + "<w:t>x</w:t></w:r></w:p>"
    document = (
        f'{doctype}<w:document xmlns:w="{_WORD}" xmlns:r="http://schemas.openxmlformats.org/'
        f'officeDocument/2006/relationships"><w:body>{body}</w:body></w:document>'
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _CONTENT_TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        if trick != 5:
            archive.writestr("word/document.xml", document)
        if trick == 6:
            archive.writestr("word/media/image1.png", bytes(min(size, 2_000) * 100_000))
            archive.writestr("../../evil", "x")
        if trick == 7:
            for number in range(min(size, 12_000)):
                archive.writestr(f"n{number}", "")
    return packed.getvalue()


def _pdf(chance: random.Random, size: int, trick: int) -> bytes:
    stream = b"BT /F1 12 Tf (some text) Tj ET " * min(size, 20_000)
    kids, parent = b"[3 0 R]", b""
    match trick:
        case 0:
            kids = b"[2 0 R 3 0 R]"  # the page tree holds itself
        case 1:
            kids = b"[" + b"3 0 R " * size + b"]"
        case 2:
            stream = bytes(min(size, 500) * 100_000)
        case 3:
            stream = b"q " * size + b"(" * size
        case 4:
            parent = b"/Contents 4 0 R /Parent 3 0 R"
        case 5:
            stream = b"[" * size + b"<<" * size
    packed = zlib.compress(stream)
    length = len(packed) if chance.random() < 0.8 else chance.choice((0, 1, 2**31, -1))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids %s >>" % (chance.choice((1, size, -1, 2**40)), kids),
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> %s >>"
        % parent,
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (length, packed),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.7\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    start = len(data) if chance.random() < 0.9 else chance.randrange(2**31)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        start,
    )
    return data


def _text(chance: random.Random, size: int, trick: int) -> bytes:
    piece = chance.choice(
        ("a\u0301\u0323", "\ufdfa", "\n", "# h\n", "- a\n", "word ", "```\n", "\r")
    )
    text = ("---\ntitle: [\n---\n" if trick == 0 else "") + piece * size
    return text.encode(chance.choice(("utf-8", "utf-16", "utf-16-be", "utf-8-sig", "utf-32")))


def _bytes(chance: random.Random, size: int, trick: int) -> bytes:
    heads = (
        b"",
        b"%PDF-1.7\n",
        b"PK\x03\x04",
        b"<html>",
        b"\xd0\xcf\x11\xe0",
        b"{\\rtf",
        b"\xff\xfe",
    )
    head = heads[trick % len(heads)]
    if trick == 7:  # an archive that says it holds 4 GB
        head = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, 0, 9, 2**32 - 1, 1, 0)
    return head + chance.randbytes(min(size, 100_000))


_FORMS: dict[str, Callable[[random.Random, int, int], bytes]] = {
    "html": _html, "docx": _docx, "pdf": _pdf, "text": _text, "bytes": _bytes,
}  # fmt: skip

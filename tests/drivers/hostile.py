"""Files made to take a converter's time or memory."""

from __future__ import annotations

import io
import zipfile

COMMENTS = b"<!--" * 65_536
"""256 KB of HTML on which the parser is quadratic: more than a minute."""

ATTRIBUTES = b"<p " + b"a=b " * 3_000_000 + b">x"
"""12 MB of HTML that takes more than a gigabyte of memory."""

_CONTENT_TYPES = b"""<?xml version="1.0"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="xml" ContentType="application/xml"/>
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml" ContentType=
"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_RELATIONSHIPS = b"""<?xml version="1.0"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="r1" Type=
"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
Target="word/document.xml"/></Relationships>"""
_DOCUMENT = (
    b'<?xml version="1.0"?><w:document xmlns:w='
    b'"http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%b</w:body></w:document>'
)


def docx_of(xml_bytes: int) -> bytes:
    """A Word file of many small paragraphs, whose XML has about so many bytes."""
    paragraph = b"<w:p><w:r><w:t>word</w:t></w:r></w:p>"
    return _archive(_DOCUMENT % (paragraph * (xml_bytes // len(paragraph))))


def zip_bomb(unpacked_bytes: int) -> bytes:
    """A Word file of some kilobytes that unpacks to so many bytes."""
    return _archive(_DOCUMENT % (b" " * unpacked_bytes))


def _archive(document: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _CONTENT_TYPES)
        archive.writestr("_rels/.rels", _RELATIONSHIPS)
        archive.writestr("word/document.xml", document)
    return file.getvalue()


def looping_pdf(levels: int = 40, pages: int = 100) -> bytes:
    """A PDF whose pages draw a form that draws the next one twice, and so on, 40 deep."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b"3 0 R " * pages, pages),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources %b >>"
        % b"<< /XObject << /X 5 0 R >> >>",
        _stream(b"", b"q /X Do Q"),
    ]
    for level in range(levels):
        form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << %b >> >>"
        deeper = b"" if level + 1 == levels else b"/X %d 0 R" % (level + 6)
        objects.append(_stream(form % deeper, b"q /X Do Q q /X Do Q" if deeper else b""))
    return _pdf(objects)


def _stream(entries: bytes, content: bytes) -> bytes:
    return b"<< %b /Length %d >>\nstream\n%b\nendstream" % (entries, len(content), content)


def _pdf(objects: list[bytes]) -> bytes:
    file, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, len(file))
    return file + b"xref\n0 %d\n0000000000 65535 f \n%b%b" % (size, table, trailer)

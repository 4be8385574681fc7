"""Ids, prefixes, titles and tags in the one form in which they are stored and compared.

Every text from outside that is normalised goes through `normal_form`. Putting combining marks into
their order is quadratic in their number on one character, and nothing can interrupt it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from zibaldone.errors import InvalidArgument
from zibaldone.limits import (
    COMBINING_MARKS_MAX,
    DOCUMENT_ID_BYTES_MAX,
    NAMESPACE_CHARS_MAX,
    TAG_CHARS_MAX,
    TAGS_MAX,
    TITLE_CHARS_MAX,
)

_LAST_CODE_POINT = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF

_SHRINK_MAX = 10
"""How many times longer than its bound a title or tag may be as given: blanks and decomposed
letters make it shorter."""

_SAMPLE_STEP = COMBINING_MARKS_MAX // 3
_SAMPLED_RUN = re.compile(rb"[^\0]{3}")
_LONG_RUN = re.compile(rb"[^\0]{%d,}" % (COMBINING_MARKS_MAX + 1))


def normal_form(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """The text in a normal form of Unicode.

    Of the combining marks on one character the first COMBINING_MARKS_MAX are kept.
    """
    if text.isascii():
        return text
    runs = _long_mark_runs(text)
    if runs:
        starts = [0, *(end for _, end in runs)]
        ends = [*(start + COMBINING_MARKS_MAX for start, _ in runs), len(text)]
        text = "".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    return unicodedata.normalize(form, text)


def _long_mark_runs(text: str) -> list[tuple[int, int]]:
    """Start and end of each run of more than COMBINING_MARKS_MAX combining marks."""
    # A look at every tenth character is enough to see that there is none, as nearly always.
    sample = bytes(map(unicodedata.combining, text[::_SAMPLE_STEP]))
    if not _SAMPLED_RUN.search(sample):
        return []
    classes = bytes(map(unicodedata.combining, text))
    return [match.span() for match in _LONG_RUN.finditer(classes)]


def document_id(raw: str, field: str = "path") -> str:
    """Give the canonical form of a document path, or say what is wrong with it.

    The form of a canonical path is itself, so every id that is listed can be read back.
    """
    _refuse_long(raw, field)
    is_plain = raw.isascii() and raw.isprintable() and "//" not in raw
    if is_plain and "/ " not in raw and "." not in raw:
        path = raw.strip(" /")  # nothing below could change or refuse it but its length
    else:
        _refuse_unstorable(raw, field)
        segments = normal_form("NFC", raw).split("/")
        # With the blanks around it too: they may end up at an end of the path and be trimmed.
        if any(part.strip() == ".." for part in segments):
            raise InvalidArgument("A document path may not contain '..'.", field=field)
        path = "/".join(part for part in segments if part.strip(" ") not in ("", ".")).strip(" ")
    if not path:
        raise InvalidArgument("The document path is empty.", field=field)
    size_bytes = len(path.encode())
    if size_bytes > DOCUMENT_ID_BYTES_MAX:
        raise InvalidArgument(
            f"The document path has {size_bytes} bytes; {DOCUMENT_ID_BYTES_MAX} are allowed.",
            field=field,
            bytes_max=DOCUMENT_ID_BYTES_MAX,
        )
    return path


def prefix(raw: str, field: str = "prefix") -> str:
    """A prefix is literal: it may end anywhere, also inside a name."""
    if not raw:
        return raw
    _refuse_long(raw, field)
    if not (raw.isascii() and raw.isprintable()):
        _refuse_unstorable(raw, field)
    text = normal_form("NFC", raw).lstrip("/")
    if len(text.encode()) > DOCUMENT_ID_BYTES_MAX:
        raise InvalidArgument(
            f"The {field} is longer than {DOCUMENT_ID_BYTES_MAX} bytes.",
            field=field,
            bytes_max=DOCUMENT_ID_BYTES_MAX,
        )
    return text


def folder(raw: str, field: str = "prefix") -> str:
    """The folder of a key, with a slash at its end; "" is everything."""
    return document_id(raw, field) + "/" if raw.strip("/") else ""


def prefix_end(prefix: str) -> str | None:
    """The first string, in code-point order, that sorts after every string with this prefix.

    UTF-8 byte order is code-point order, so `prefix <= id < prefix_end(prefix)` is the literal
    prefix match as an index range: no pattern, hence nothing to escape. None: no upper bound.
    """
    for position in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[position])
        if code < _LAST_CODE_POINT:
            successor = code + 1
            if _FIRST_SURROGATE <= successor <= _LAST_SURROGATE:
                successor = _LAST_SURROGATE + 1
            return prefix[:position] + chr(successor)
    return None


def title(raw: str) -> str:
    return _line(raw, "title", "The title", TITLE_CHARS_MAX)


def tags(raw: Iterable[str]) -> tuple[str, ...]:
    """Trimmed, without empty ones or repeats, in the order given."""
    cleaned = dict.fromkeys(_line(tag, "tags", "A tag", TAG_CHARS_MAX) for tag in raw)
    cleaned.pop("", None)
    if len(cleaned) > TAGS_MAX:
        raise InvalidArgument(
            f"{len(cleaned)} tags given; {TAGS_MAX} are allowed.", field="tags", tags_max=TAGS_MAX
        )
    return tuple(cleaned)


def _line(raw: str, field: str, name: str, chars_max: int) -> str:
    """Storable text on one line, single blanks between its words."""
    text = raw
    if len(raw) <= _SHRINK_MAX * chars_max:  # otherwise too long whatever it is made of
        text = " ".join(_storable(raw, field).split())
    if len(text) > chars_max:
        raise InvalidArgument(
            f"{name} has {len(text)} characters; {chars_max} are allowed.",
            field=field,
            chars_max=chars_max,
        )
    return text


def body(raw: str, bytes_max: int, field: str = "content") -> str:
    """A body is stored as given; it only has to be text that UTF-8 can hold, and not too long."""
    try:
        size_bytes = len(raw) if raw.isascii() else len(raw.encode())
    except UnicodeEncodeError as problem:
        raise _unpaired_surrogate(field, problem.start) from None
    _refuse_nul(raw, field)
    if size_bytes > bytes_max:
        raise InvalidArgument(
            f"The {field} has {size_bytes} bytes; {bytes_max} are allowed.",
            field=field,
            bytes_max=bytes_max,
        )
    return raw


def namespace(raw: str) -> str:
    if not (raw.isascii() and raw.replace("-", "").replace("_", "").replace(".", "").isalnum()):
        raise InvalidArgument(
            "A namespace is made of ASCII letters, digits, '-', '_' and '.'.", field="namespace"
        )
    if len(raw) > NAMESPACE_CHARS_MAX:
        raise InvalidArgument(
            f"A namespace has at most {NAMESPACE_CHARS_MAX} characters.", field="namespace"
        )
    return raw


def _storable(text: str, field: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise _unpaired_surrogate(field, problem.start) from None
    _refuse_nul(text, field)
    _refuse_mark_runs(text, field)
    return normal_form("NFC", text)


def _refuse_long(text: str, field: str) -> None:
    """Before any work on it: NFC leaves at least half as many bytes as there were characters."""
    if len(text) > 2 * DOCUMENT_ID_BYTES_MAX:
        raise InvalidArgument(
            f"The {field} has {len(text)} characters; {DOCUMENT_ID_BYTES_MAX} bytes are allowed.",
            field=field,
            bytes_max=DOCUMENT_ID_BYTES_MAX,
        )


def _refuse_nul(text: str, field: str) -> None:
    position = text.find("\x00")
    if position >= 0:
        raise InvalidArgument(
            f"NUL character in {field} at {position}.", field=field, position=position
        )


def _refuse_unstorable(text: str, field: str) -> None:
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        if category == "Cs":
            raise _unpaired_surrogate(field, position)
        if category in ("Cc", "Zl", "Zp"):
            raise InvalidArgument(
                f"Control character U+{ord(char):04X} in {field} at {position}.",
                field=field,
                position=position,
            )
    _refuse_mark_runs(text, field)


def _refuse_mark_runs(text: str, field: str) -> None:
    """A name is stored as given or not at all; elsewhere what is beyond the bound is ignored."""
    if text.isascii() or not (runs := _long_mark_runs(text)):
        return
    start, end = runs[0]
    raise InvalidArgument(
        f"{end - start} combining marks on one character in {field} at {start}; "
        f"{COMBINING_MARKS_MAX} are allowed.",
        field=field,
        position=start,
        marks_max=COMBINING_MARKS_MAX,
    )


def _unpaired_surrogate(field: str, position: int) -> InvalidArgument:
    return InvalidArgument(
        f"Unpaired surrogate in {field} at {position}: not valid text.",
        field=field,
        position=position,
    )

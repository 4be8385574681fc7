"""Files as pack sees them, and how their text is read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from zibaldone.limits import PACK_FILE_BYTES_MAX, PACK_READ_TRIES_MAX, PACK_UNDECODABLE_SHARE_MAX
from zibaldone.model.consult import PlacedFile
from zibaldone.text.ignore import READ_FLAGS
from zibaldone.text.secrets import redact

NOT_REGULAR = "not a regular file"
BINARY = "binary"
TOO_LARGE = f"larger than {PACK_FILE_BYTES_MAX} bytes"

_DIGEST_BYTES = 16
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class Counted(NamedTuple):
    """What reading a file told about it."""

    tokens: int
    redacted: int = 0
    """Secrets taken out."""
    reason: str = ""
    """Why it is left out; empty if it is text."""
    note: str = ""
    """What is odd about its text."""
    head_tokens: int = 0
    """Those of the line with its name, which depends on the roots; part of `tokens`."""


@dataclass(slots=True)
class FoundFile:
    """A file below a root. The walk hands out the same object while the file stays the same."""

    path: str
    """Absolute, without symbolic links."""
    shown: str
    """As the assistant and the answers name it: `<root>/relative`."""
    size: int
    mtime_ns: int
    inode: int = 0
    is_settled: bool = True
    """False: so young that another edit might leave size and mtime as they are."""
    reason: str = ""
    """Why it is left out, as far as that can be seen without reading it."""
    counted: dict[str, Counted] = field(default_factory=dict)
    """By way of counting."""
    unchanged: tuple[Counted, PlacedFile] | None = None
    """How it is reported when it is unchanged; most files are, in most turns."""


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file for the index of one call."""

    path: str
    """As the assistant names it."""
    size: int
    mtime_ns: int
    load: Callable[[], str]
    """Its text, without secrets if the assistant redacts. OSError if it cannot be read any more."""


@dataclass(frozen=True, slots=True)
class FileText:
    text: str
    size: int
    mtime_ns: int
    digest: str
    note: str = ""


class LeftOut(Exception):
    """The file is no text that can be shown; the message says why."""


def read_text(path: str) -> FileText:
    """The text of a regular file, with the stat that belongs to it.

    A pipe or device is not waited for, a link is not followed. LeftOut, OSError.
    """
    data, found = _read(path)
    note = ""
    if data.startswith(_UTF16_MARKS):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data:
        raise LeftOut(BINARY)
    else:
        text = data.removeprefix(_UTF8_MARK).decode("utf-8", errors="replace")
        if "\ufffd" in text and (wrong := _undecodable(data, text)):
            if wrong > PACK_UNDECODABLE_SHARE_MAX * len(text):
                raise LeftOut(BINARY)
            note = f"{wrong} bytes are not UTF-8 and shown as \ufffd"
    return FileText(text, found.st_size, found.st_mtime_ns, digest_of(data), note)


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def digest_of_file(path: str) -> str | None:
    """The digest of what is in the file now; None if it cannot be read."""
    try:
        return digest_of(_read(path)[0])
    except (OSError, LeftOut):
        return None


def _undecodable(data: bytes, text: str) -> int:
    """Replacement characters that the file does not hold itself."""
    return text.count("\ufffd") - data.count("\ufffd".encode())


def _read(path: str) -> tuple[bytes, os.stat_result]:
    for _ in range(PACK_READ_TRIES_MAX):
        descriptor = _open(path)
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise LeftOut(NOT_REGULAR)
            # A folder on the way may have become a link since the walk.
            if os.path.realpath(path) != path:
                raise LeftOut("moved behind a link while it was read")
            data = file.read(PACK_FILE_BYTES_MAX + 1)
            after = os.fstat(descriptor)
        if len(data) > PACK_FILE_BYTES_MAX:
            raise LeftOut(TOO_LARGE)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            return data, after
    raise LeftOut("changed while it was read")


def _open(path: str) -> int:
    try:
        return os.open(path, READ_FLAGS)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise LeftOut("a symbolic link") from None
        if problem.errno == errno.ENXIO:  # a socket
            raise LeftOut(NOT_REGULAR) from None
        raise


def load_text(path: str, *, is_redacted: bool) -> str:
    """The text of a file as a provider may see it."""
    try:
        text = read_text(path).text
    except LeftOut as why:
        raise OSError(str(why)) from None
    return redact(text).text if is_redacted else text

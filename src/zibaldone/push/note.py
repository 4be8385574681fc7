"""A Markdown file as what a memory server takes: one episode, or several linked ones."""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from zibaldone.limits import PUSH_NOTE_BYTES_MAX, TITLE_CHARS_MAX
from zibaldone.model.instant import from_iso, to_iso
from zibaldone.push.scan import LeftOut, LocalFile
from zibaldone.text.frontmatter import as_line, read_front_matter, tags_of

_NAMESPACE = uuid.UUID("6b1f2f52-3a1c-5c0e-9a57-0d8f6f0a7c11")
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}[ \t]+(.+)$", re.MULTILINE)
_DATED_NAME = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_TITLE_SEARCH_CHARS = 20_000
_NAME_CHARS_MAX = TITLE_CHARS_MAX - 20
"""The numbers of a part come after it."""
_DESCRIPTION_CHARS_MAX = 900
"""Zibaldone takes a thousand."""
_TIME_KEYS = ("reference_time", "timestamp", "created_at", "created", "date")
_TYPE_KEYS = ("capture_type", "type")
_BREAKS = ("\n# ", "\n## ", "\n\n", "\n", " ")
"""Where a long note is cut, the best place first."""


class Source(NamedTuple):
    """Where notes come from. It is part of what identifies them on the server."""

    group: str
    name: str
    """Of the folder: two folders of one group may have notes of the same path."""

    def note_id(self, path: str) -> str:
        """The same for the same note on each machine, whatever it says."""
        return str(uuid.uuid5(_NAMESPACE, "\n".join((self.group, self.name, path))))

    def part_id(self, path: str, part: int) -> str:
        """That of the first part is the note's."""
        own = self.note_id(path)
        return own if part == 1 else str(uuid.uuid5(uuid.UUID(own), str(part)))

    @property
    def mark(self) -> str:
        """A short name by which episodes of this source are known among others."""
        return hashlib.sha256(f"{self.group}\n{self.name}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Episode:
    """What is sent of a note, or of a part of it."""

    uuid: str
    note_id: str
    part: int
    digest: str
    """Of the whole file it was made of."""
    name: str
    body: str
    group: str
    description: str
    reference_time: str


@dataclass(frozen=True, slots=True)
class Note:
    """A file that was read."""

    file: LocalFile
    """As it was when it was read."""
    read_ns: int
    digest: str
    text: str
    """Without a byte order mark."""
    body: str
    """The text without its front matter."""
    title: str
    description: str
    reference_time: str
    problem: str
    """Why its front matter could not be read; empty if it could, or there is none."""

    def episodes(
        self, source: Source, *, part_chars_max: int, with_front_matter: bool
    ) -> list[Episode]:
        text = self.text if with_front_matter else self.body
        parts = split_text(text, part_chars_max)
        count = len(parts)
        return [
            Episode(
                uuid=source.part_id(self.file.path, number),
                note_id=source.note_id(self.file.path),
                part=number,
                digest=self.digest,
                name=self.title if count == 1 else f"{self.title} ({number}/{count})",
                body=part if count == 1 else self._link(number, count) + part,
                group=source.group,
                description=self.description,
                reference_time=self.reference_time,
            )
            for number, part in enumerate(parts, 1)
        ]

    def _link(self, number: int, count: int) -> str:
        """A line that names the parts beside this one."""
        beside = [
            f"{word} “{self.title} ({other}/{count})”"
            for word, other in (("after", number - 1), ("before", number + 1))
            if 1 <= other <= count
        ]
        return f"[Part {number} of {count} of {self.file.path}: {', '.join(beside)}]\n\n"


def read_note(root: Path, path: str) -> Note | LeftOut:
    """Read a file, or say why it cannot be sent."""
    try:
        with (root / path).open("rb") as opened:
            # Before reading: a change while we read shows as a newer time at the next look.
            read_ns = time.time_ns()
            stat = os.fstat(opened.fileno())
            if stat.st_size > PUSH_NOTE_BYTES_MAX:
                return LeftOut(path, f"longer than {PUSH_NOTE_BYTES_MAX} bytes")
            data = opened.read(PUSH_NOTE_BYTES_MAX + 1)
    except OSError as problem:
        return LeftOut(path, f"cannot be read: {problem.strerror}")
    if len(data) > PUSH_NOTE_BYTES_MAX:
        return LeftOut(path, f"longer than {PUSH_NOTE_BYTES_MAX} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return LeftOut(path, "not UTF-8")
    file = LocalFile(path, len(data), stat.st_mtime_ns, stat.st_ctime_ns)
    return _note_of(file, read_ns, hashlib.sha256(data).hexdigest(), text)


def _note_of(file: LocalFile, read_ns: int, digest: str, text: str) -> Note | LeftOut:
    front = read_front_matter(text)
    if not front.body.strip():
        return LeftOut(file.path, "empty", is_empty=True)
    return Note(
        file=file,
        read_ns=read_ns,
        digest=digest,
        text=text,
        body=front.body,
        title=_title(file.path, front.values, front.body),
        description=_description(file.path, front.values),
        reference_time=_reference_time(file, front.values),
        problem=front.problem,
    )


def _title(path: str, values: Mapping[str, Any], body: str) -> str:
    for key in ("title", "name"):
        if given := as_line(values.get(key)):
            return given[:_NAME_CHARS_MAX]
    heading = _HEADING.search(body, 0, _TITLE_SEARCH_CHARS)
    stem = path.rpartition("/")[2].rpartition(".")[0]
    title = as_line(heading[1].rstrip().rstrip("#")) if heading else ""
    return title[:_NAME_CHARS_MAX] or stem


def _description(path: str, values: Mapping[str, Any]) -> str:
    """What Graphiti has no field for, in words."""
    given = as_line(values.get("source_description"))
    words = [given or f"Markdown note {path}"]
    for label, keys in (
        ("type", _TYPE_KEYS),
        ("rating", ("rating",)),
        ("source", ("source",)),
        ("session", ("session_id",)),
    ):
        value = next((line for key in keys if (line := as_line(values.get(key)))), "")
        if value:
            words.append(f"{label} {value}")
    if tags := tags_of(values):
        words.append(f"tags {', '.join(tags)}")
    return "; ".join(words)[:_DESCRIPTION_CHARS_MAX]


def _reference_time(file: LocalFile, values: Mapping[str, Any]) -> str:
    """When what the note tells happened: its front matter, its name, or when it was written."""
    for key in _TIME_KEYS:
        if (instant := _instant(as_line(values.get(key)))) is not None:
            return instant
    dated = _DATED_NAME.search(file.path.rpartition("/")[2])
    if dated and (instant := _instant(dated[1])) is not None:
        return instant
    return to_iso(file.mtime_ns // 1000)


def _instant(text: str) -> str | None:
    """An ISO time, also one with the name of a zone after it, which is then ignored."""
    for candidate in (text, text.rpartition(" ")[0]):
        try:
            return to_iso(from_iso(candidate))
        except (ValueError, OverflowError):
            continue
    return None


def split_text(text: str, chars_max: int) -> Sequence[str]:
    """The text in parts of at most so many characters; joined they are the text again."""
    parts = []
    start = 0
    while len(text) - start > chars_max:
        end = start + chars_max
        for separator in _BREAKS:
            found = text.rfind(separator, start + chars_max // 2, end)
            if found >= 0:
                # A heading begins the next part; other separators end this one.
                end = found + 1 if "#" in separator else found + len(separator)
                break
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    return parts

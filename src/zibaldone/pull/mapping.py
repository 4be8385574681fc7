"""A row as the document that it becomes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from zibaldone.model.pulled import RowDocument
from zibaldone.model.source import Part, SourceDefinition, TagStyle
from zibaldone.pull.ids import id_maker
from zibaldone.pull.reflect import TableInfo
from zibaldone.pull.values import LEFT_OUT, Row, encoded, instant_us, is_zero_date, plain, text
from zibaldone.text.markup import looks_like_html, to_markdown

_VERSION = 1
"""Of the way in which rows become documents. With another one, all rows are read again."""

_ANGLED = re.compile(r"<([^<>]+)>")


class RowError(Exception):
    """A row that cannot become a document; says why."""


class Mapper:
    """Rows are given as values in the order of `columns`; the key comes first."""

    def __init__(self, definition: SourceDefinition, info: TableInfo) -> None:
        self._definition = definition
        document = definition.document
        used = {part.column for part in (*document.title, *document.body)}
        if document.metadata is None:
            metadata = {
                column.name: column.name
                for column in info.columns
                if column.name not in used and column.kind != "binary"
            }
        else:
            metadata = dict(document.metadata)
        named = (*definition.key, *document.columns(), *metadata.values())
        self.columns: tuple[str, ...] = tuple(dict.fromkeys(named))
        """What is read of a row."""
        self.metadata_columns = metadata
        self.left_out = tuple(
            column.name
            for column in info.columns
            if column.kind == "binary" and column.name not in self.columns
        )
        """Binary columns, which no document can hold."""
        self._places = {name: number for number, name in enumerate(self.columns)}
        self._title = self._parts(document.title)
        self._body = self._parts(document.body)
        self._metadata = [(name, self._places[column]) for name, column in metadata.items()]
        self._tags = self._place(document.tags)
        self._created = self._place(document.created)
        self.make_id: Callable[[Sequence[Any]], str] = id_maker(definition)
        self.key_length = len(definition.key)
        self.fingerprint = self._fingerprint()
        """Another one: rows of the same content become other documents."""

    def _fingerprint(self) -> bytes:
        described = {
            "version": _VERSION,
            "name": self._definition.name,
            "key": self._definition.key,
            "document": self._definition.document.as_dict(),
            "columns": self.columns,
            "metadata": self.metadata_columns,
        }
        return hashlib.blake2b(orjson.dumps(described), digest_size=16).digest()

    def _place(self, column: str) -> int | None:
        return self._places[column] if column else None

    def _parts(self, parts: Sequence[Part]) -> list[int | str]:
        return [self._places[part.column] if part.column else part.text for part in parts]

    def content(self, row: Row) -> bytes:
        """Hash of all that the document is made of. The definition is part of it."""
        return hashlib.blake2b(encoded(row), digest_size=16, key=self.fingerprint).digest()

    def document_id(self, row: Row) -> str:
        """RowError: a part of the key is NULL."""
        key = row[: self.key_length]
        if None in key:
            raise RowError("its key is NULL")
        return self.make_id(key)

    def document(self, row: Row) -> RowDocument:
        key = row[: self.key_length]
        pk = {
            name: _key_value(value) for name, value in zip(self._definition.key, key, strict=True)
        }
        body, mime = self._text(row)
        metadata = {}
        for name, place in self._metadata:
            value = plain(row[place])
            if value is not None and value is not LEFT_OUT:
                metadata[name] = value
        created = None if self._created is None else instant_us(row[self._created])
        return RowDocument(
            document_id=self.make_id(key),
            title=" ".join(self._joined(self._title, row).split()),
            body=body,
            mime=mime,
            tags=self._tag_list(row),
            metadata=metadata,
            pk=pk,
            created_at_us=created,
        )

    def _joined(self, parts: Sequence[int | str], row: Row) -> str:
        return "".join(part if isinstance(part, str) else text(row[part]) for part in parts)

    def _text(self, row: Row) -> tuple[str, str]:
        """Body and media type. What is HTML in it becomes Markdown, each column for itself."""
        body_format = self._definition.document.body_format
        pieces = []
        for part in self._body:
            piece = part if isinstance(part, str) else text(row[part])
            if not isinstance(part, str) and (
                body_format == "html" or (body_format == "auto" and looks_like_html(piece))
            ):
                piece = to_markdown(piece)
            pieces.append(piece)
        mime = "text/plain" if body_format == "text" else "text/markdown"
        return "".join(pieces), mime

    def _tag_list(self, row: Row) -> tuple[str, ...]:
        if self._tags is None:
            return ()
        return tuple(tags_of(row[self._tags], self._definition.document.tag_style))


def tags_of(value: Any, style: TagStyle) -> list[str]:
    """`<a><b>`, `a,b` or `["a", "b"]`."""
    if isinstance(value, list | tuple):
        return [text(tag) for tag in value]
    if not isinstance(value, str) or is_zero_date(value):
        return []
    stripped = value.strip()
    if style == "json" or (style == "auto" and stripped.startswith("[")):
        try:
            listed = orjson.loads(stripped)
        except orjson.JSONDecodeError:
            listed = None
        if isinstance(listed, list):
            return [text(tag) for tag in listed]
        if style == "json":
            return []
    if style == "angle" or (style == "auto" and stripped.startswith("<")):
        return _ANGLED.findall(stripped)
    if style == "auto" and stripped.startswith("|"):
        return [tag for tag in stripped.split("|") if tag.strip()]
    return [tag for tag in stripped.split(",") if tag.strip()]


def _key_value(value: Any) -> Any:
    shown = plain(value)
    return bytes(value).hex() if shown is LEFT_OUT else shown

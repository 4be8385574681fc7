"""Rows of a source as the documents that they become, before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zibaldone.limits import SOURCE_PREVIEW_CHARS_MAX
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.connect import open_source
from zibaldone.pull.definition import plan, warnings
from zibaldone.pull.mapping import RowError


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    document_id: str
    title: str = ""
    body: str = ""
    """Its beginning."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    problem: str | None = None
    """Why the row cannot become a document."""


@dataclass(frozen=True, slots=True)
class Preview:
    rows: tuple[PreviewedRow, ...]
    notes: tuple[str, ...]
    """What works, and could be better."""
    refetch: tuple[str, ...]
    """Columns that may be read again."""


def preview(definition: SourceDefinition, rows_max: int, environment: Mapping[str, str]) -> Preview:
    """The first rows, in the order of their keys. Blocks: it asks the database.

    InvalidArgument: the definition does not fit. SourceUnavailable: the database cannot be asked.
    """
    with open_source(definition, environment, is_tolerant=True) as source:
        made = plan(source, definition)
        mapper = made.mapper
        selected = source.rows(made.select(mapper.columns).limit(rows_max))
        rows = []
        for row in selected:
            try:
                document = mapper.document(row)
                document_id = mapper.document_id(row)
            except RowError as error:
                rows.append(PreviewedRow("(no id)", problem=str(error)))
                continue
            rows.append(
                PreviewedRow(
                    document_id=document_id,
                    title=document.title,
                    body=document.body[:SOURCE_PREVIEW_CHARS_MAX],
                    tags=document.tags,
                    metadata=document.metadata,
                )
            )
        refetch = mapper.columns if definition.refetch is None else definition.refetch
        return Preview(tuple(rows), tuple(warnings(definition, made.info)), tuple(refetch))

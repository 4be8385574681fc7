"""A few rows as the documents that they would become, before anything is stored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from zibaldone.model.pulled import RowDocument
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.connect import open_source
from zibaldone.pull.definition import plan, warnings
from zibaldone.pull.faults import Undecodable
from zibaldone.pull.mapping import RowError


@dataclass(frozen=True, slots=True)
class Preview:
    documents: tuple[RowDocument, ...]
    problems: tuple[str, ...]
    """Rows among them that would fail."""
    notes: tuple[str, ...]
    """What could be better about the definition."""


def preview(
    definition: SourceDefinition,
    *,
    rows: int = 3,
    environment: Mapping[str, str] | None = None,
) -> Preview:
    """Blocks. InvalidArgument: the definition does not fit. SourceUnavailable: no answer."""
    given = os.environ if environment is None else environment
    try:
        return _preview(definition, rows, given, is_tolerant=False)
    except Undecodable:
        return _preview(definition, rows, given, is_tolerant=True)


def _preview(
    definition: SourceDefinition, rows: int, environment: Mapping[str, str], *, is_tolerant: bool
) -> Preview:
    with open_source(definition, environment, is_tolerant=is_tolerant) as connection:
        made = plan(connection, definition)
        read = connection.rows(made.select(made.mapper.columns).limit(rows))
    documents, problems = [], []
    for row in read:
        try:
            made.mapper.document_id(row)
            documents.append(made.mapper.document(row))
        except RowError as error:
            problems.append(str(error))
    notes = warnings(definition, made.info)
    return Preview(tuple(documents), tuple(problems), tuple(notes))

"""find_tables, propose_source, add_source: a table of another database becomes a source."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from zibaldone.access.principal import NAMESPACE_DEFAULT
from zibaldone.errors import InvalidArgument
from zibaldone.limits import (
    SOURCE_NAME_CHARS_MAX,
    SOURCE_PREVIEW_CHARS_MAX,
    SOURCE_PREVIEW_ROWS_DEFAULT,
)
from zibaldone.model.instant import now_us
from zibaldone.model.source import SourceDefinition
from zibaldone.pull import registry
from zibaldone.pull.definition import check
from zibaldone.pull.preview import Preview, preview
from zibaldone.pull.propose import joined, proposal
from zibaldone.pull.reflect import tables
from zibaldone.tools.spec import Arguments, Call, ToolSpec

_PLAIN = ("where", "watermark", "schedule", "live", "poll_seconds")
_OF_DOCUMENT = ("tags", "created", "updated")


class FindTables(Arguments):
    url: str


class ProposeSource(Arguments):
    url: str = Field(description="Of the database; ${NAME} for a password")
    table: str | None = None
    select: str | None = Field(None, description="In place of a table")
    name: str | None = None
    namespace: str | None = None
    where: str | None = None
    key: list[str] | None = None
    title: list[str] | None = None
    body: list[str] | None = None
    tags: str | None = None
    created: str | None = None
    updated: str | None = None
    watermark: str | None = None
    schedule: str | None = None
    live: bool | None = None
    poll_seconds: float | None = None


class AddSource(Arguments):
    name: str
    definition: dict[str, Any] = Field(description="As [sources.NAME] in zibaldone.toml has it")
    namespace: str | None = None


class TableNames(TypedDict):
    tables: list[str]


class RowShown(TypedDict):
    document_id: str
    title: str
    body: str
    tags: list[str]
    metadata: Mapping[str, Any]


class ProposedSource(TypedDict):
    name: str
    namespace: str
    definition: Mapping[str, Any]
    documents: list[RowShown]
    notes: list[str]
    problems: list[str]


class AddedSource(TypedDict):
    source: str
    namespace: str
    source_id: int
    trigger: NotRequired[str]


async def handle_tables(call: Call, given: FindTables) -> TableNames:
    del call
    _require_sound("source", NAMESPACE_DEFAULT, given.url)
    return {"tables": await asyncio.to_thread(tables, given.url)}


async def handle_propose(call: Call, given: ProposeSource) -> ProposedSource:
    del call
    return await asyncio.to_thread(_propose, given)


def _propose(given: ProposeSource) -> ProposedSource:
    if given.table and given.select:
        raise InvalidArgument("Give a table or a SELECT, not both.", field="select")
    name = given.name or _name_of(given.table or "")
    namespace = given.namespace or NAMESPACE_DEFAULT
    _require_sound(name, namespace, given.url)
    if given.table:
        base = proposal(given.url, given.table, name, namespace=namespace).as_dict()
    else:
        base = {"url": given.url, "select": given.select or "", "document": {}}
    definition = SourceDefinition.from_table(name, _with_changes(base, given), namespace)
    problems = check(definition)
    shown = (
        Preview((), (), ()) if problems else preview(definition, rows=SOURCE_PREVIEW_ROWS_DEFAULT)
    )
    return {
        "name": name,
        "namespace": namespace,
        "definition": definition.as_dict(),
        "documents": rows_shown(shown),
        "notes": [*shown.problems, *shown.notes],
        "problems": problems,
    }


def _require_sound(name: str, namespace: str, url: str) -> None:
    """Before anything is asked of a database: a password in clear, say, is not used at all."""
    SourceDefinition.from_table(
        name, {"url": url, "table": "x", "key": "x", "document": {"body": "x"}}, namespace
    )


def _name_of(table: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", table.rpartition(".")[2]).strip("._-")
    return plain[:SOURCE_NAME_CHARS_MAX] or "source"


def _with_changes(base: dict[str, Any], given: ProposeSource) -> dict[str, Any]:
    document = dict(base.get("document", {}))
    changed = {**base, "document": document}
    for name in _PLAIN:
        if (value := getattr(given, name)) is not None:
            changed[name] = value
    for name in _OF_DOCUMENT:
        if (value := getattr(given, name)) is not None:
            document[name] = value
    if given.key is not None:
        changed["key"] = given.key
    if given.title is not None:
        document["title"] = _with_blanks(given.title)
    if given.body is not None:
        document["body"] = [part.as_value() for part in joined(given.body)]
        if given.title is None:  # a column is not proposed for both
            document["title"] = [c for c in document.get("title", ()) if c not in given.body]
    return changed


def _with_blanks(columns: Sequence[str]) -> list[Any]:
    parts: list[Any] = []
    for column in columns:
        parts += [{"text": " "}, column] if parts else [column]
    return parts


def rows_shown(shown: Preview) -> list[RowShown]:
    return [
        {
            "document_id": row.document_id,
            "title": row.title,
            "body": row.body[:SOURCE_PREVIEW_CHARS_MAX],
            "tags": list(row.tags),
            "metadata": row.metadata,
        }
        for row in shown.documents
    ]


async def handle_add(call: Call, given: AddSource) -> AddedSource:
    namespace = given.namespace or NAMESPACE_DEFAULT
    definition = SourceDefinition.from_table(given.name, given.definition, namespace)
    if problems := await asyncio.to_thread(check, definition):
        raise InvalidArgument(
            f"The source {given.name!r} does not fit its table: " + " ".join(problems),
            problems=problems,
        )
    at_us = now_us()
    source_id = await call.runtime.store.upkeep(
        lambda upkeep: registry.add(upkeep, definition, registry.COMMAND, at_us)
    )
    return {"source": definition.name, "namespace": namespace, "source_id": source_id}


TABLES = ToolSpec(
    name="find_tables",
    title="Tables of a database",
    description="List the tables and views of a database.",
    arguments=FindTables,
    result=TableNames,
    effect="admin",
    handler=handle_tables,
    seconds_max=math.inf,
    is_local=True,
)
PROPOSE = ToolSpec(
    name="propose_source",
    title="Propose a source",
    description="Say what the columns of a table are taken for, and show rows as documents.",
    arguments=ProposeSource,
    result=ProposedSource,
    effect="admin",
    handler=handle_propose,
    seconds_max=math.inf,
    is_local=True,
)
ADD = ToolSpec(
    name="add_source",
    title="Add a source",
    description="Check a definition against its table, and keep it.",
    arguments=AddSource,
    result=AddedSource,
    effect="admin",
    handler=handle_add,
    seconds_max=math.inf,
    is_local=True,
)

"""The functions that an assistant may call: search and read the files of the turn's store, and
search the knowledge base where it may.

They are always the same, in the same order, whatever the turn has: they stand at the beginning of
the prompt, and a provider's cache ends at the first difference.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from zibaldone.errors import ZibaldoneError
from zibaldone.limits import (
    CONSULT_SEARCH_HITS_DEFAULT,
    CONSULT_SEARCH_HITS_MAX,
    CONSULT_TOOL_BYTES_MAX,
)
from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import ToolCall, ToolDefinition

Knowledge = Callable[[str, int], Awaitable[str]]
"""Searches the knowledge base as the caller: words, how many hits → text."""


class FoundChunk(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def from_line(self) -> int: ...
    @property
    def to_line(self) -> int: ...
    @property
    def text(self) -> str: ...


class FileStore(Protocol):
    """The files of a turn that are not in the prompt."""

    @property
    def files(self) -> Sequence[str]: ...

    async def search(self, query: str, k: int) -> Sequence[FoundChunk]: ...

    async def read(
        self, path: str, from_line: int | None = None, to_line: int | None = None
    ) -> str: ...


def _schema(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": False,
    }


_HOW_MANY = {"type": "integer", "minimum": 1, "maximum": CONSULT_SEARCH_HITS_MAX}

SEARCH_FILES = ToolDefinition(
    "search_files",
    "Search the files that are marked as in the store, by meaning and by words. Gives pieces of "
    "files with their paths and lines.",
    _schema("query", query={"type": "string"}, limit=_HOW_MANY),
)
READ_FILE = ToolDefinition(
    "read_file",
    "Read a file that is marked as in the store, whole or some of its lines.",
    _schema(
        "path",
        path={"type": "string"},
        from_line={"type": "integer", "minimum": 1},
        to_line={"type": "integer", "minimum": 1},
    ),
)
SEARCH_KNOWLEDGE = ToolDefinition(
    "search_knowledge",
    "Search the user's knowledge base, by meaning and by words. Gives passages of documents.",
    _schema("query", query={"type": "string"}, limit=_HOW_MANY),
)

_EMPTY_STORE = (
    "The store is empty in this turn: every file that you can see is in the conversation itself."
)


def definitions(assistant: Assistant) -> tuple[ToolDefinition, ...]:
    more = (SEARCH_KNOWLEDGE,) if assistant.knowledge else ()
    return (SEARCH_FILES, READ_FILE, *more)


class Functions:
    """Carries out what the assistant calls. What is wrong with a call is told to the assistant."""

    def __init__(self, store: FileStore | None, knowledge: Knowledge | None) -> None:
        self._store = store
        self._knowledge = knowledge

    async def run(self, call: ToolCall) -> str:
        """The text that the assistant is given, within CONSULT_TOOL_BYTES_MAX."""
        try:
            text = await self._run(call)
        except _BadCall as problem:
            text = f"Error: {problem}"
        except ZibaldoneError as error:
            text = f"Error: {error.message}"
        return _cut(text)

    async def _run(self, call: ToolCall) -> str:
        if call.name == SEARCH_FILES.name:
            given = _arguments(call, SEARCH_FILES)
            return await self._search_files(given["query"], _limit(given))
        if call.name == READ_FILE.name:
            given = _arguments(call, READ_FILE)
            return await self._read_file(given)
        if call.name == SEARCH_KNOWLEDGE.name and self._knowledge is not None:
            given = _arguments(call, SEARCH_KNOWLEDGE)
            return await self._knowledge(given["query"], _limit(given))
        names = [SEARCH_FILES.name, READ_FILE.name]
        names += [SEARCH_KNOWLEDGE.name] if self._knowledge is not None else []
        raise _BadCall(f"there is no function {call.name[:64]!r}; there are {', '.join(names)}.")

    async def _search_files(self, query: str, limit: int) -> str:
        if self._store is None:
            return _EMPTY_STORE
        hits = await self._store.search(query, limit)
        if not hits:
            return "Nothing in the store matches."
        shown = (f"{hit.path}:{hit.from_line}-{hit.to_line}\n{hit.text}" for hit in hits)
        return "\n\n".join(shown)

    async def _read_file(self, given: dict[str, Any]) -> str:
        if self._store is None:
            return _EMPTY_STORE
        first, last = given.get("from_line"), given.get("to_line")
        return await self._store.read(given["path"], first, last)


class _BadCall(Exception):
    """A call that cannot be carried out; the message is for the model."""


def _arguments(call: ToolCall, definition: ToolDefinition) -> dict[str, Any]:
    """What the model wrote, checked. Weak models write anything."""
    properties = definition.parameters["properties"]
    required = definition.parameters["required"][0]
    example = f'{{"{required}": "…"}}'
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        raise _BadCall(f"the arguments are not JSON; write them as {example}.") from None
    if not isinstance(given, dict):
        raise _BadCall(f"the arguments must be an object: {example}.")
    checked: dict[str, Any] = {}
    for name, schema in properties.items():
        value = given.get(name)
        if value is None:
            continue
        if schema["type"] == "integer":
            value = _integer(value)
            if value is None:
                raise _BadCall(f"{name} must be a whole number from 1.")
        elif not isinstance(value, str) or not _is_text(value):
            raise _BadCall(f"{name} must be text.")
        checked[name] = value
    if not str(checked.get(required, "")).strip():
        raise _BadCall(f"{required} is missing; write {example}.")
    return checked


def _integer(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and isinstance(value, int) and 1 <= value < 2**31 else None


def _is_text(value: str) -> bool:
    """An unpaired surrogate is not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _limit(given: dict[str, Any]) -> int:
    return min(int(given.get("limit", CONSULT_SEARCH_HITS_DEFAULT)), CONSULT_SEARCH_HITS_MAX)


def _cut(text: str) -> str:
    written = text.encode(errors="replace")
    if len(written) <= CONSULT_TOOL_BYTES_MAX:
        return written.decode()
    cut = written[:CONSULT_TOOL_BYTES_MAX].decode(errors="ignore")
    return f"{cut}\n[cut here: ask for less, or for certain lines]"

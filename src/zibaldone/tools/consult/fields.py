"""Arguments and answers that the tools of assistants share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

import orjson
from pydantic import Field, field_validator
from typing_extensions import TypedDict

from zibaldone.consult.answer import FileList, LeftOutList, StoredAnswer, TokensUsed
from zibaldone.errors import InvalidArgument, NotConfigured
from zibaldone.limits import (
    ASSISTANT_NAME_CHARS_MAX,
    CONSULT_SCHEMA_BYTES_MAX,
    CONSULT_SESSION_ID_CHARS_MAX,
    DOCUMENT_ID_BYTES_MAX,
    JOB_ID_CHARS_MAX,
    PACK_INSTRUCTIONS_CHARS_MAX,
    PACK_PATH_CHARS_MAX,
    PACK_PATHS_MAX,
)
from zibaldone.model.assistant import Assistant
from zibaldone.tools.spec import Arguments, Call

SessionId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=CONSULT_SESSION_ID_CHARS_MAX,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Your name for the conversation; the same name continues it",
    ),
]
AssistantName = Annotated[str, Field(max_length=ASSISTANT_NAME_CHARS_MAX)]
Path = Annotated[str, Field(min_length=1, max_length=PACK_PATH_CHARS_MAX)]
Paths = Annotated[list[Path], Field(max_length=PACK_PATHS_MAX)]
StorePath = Annotated[str, Field(min_length=1, max_length=DOCUMENT_ID_BYTES_MAX)]
JobId = Annotated[str, Field(pattern=r"^[0-9A-Za-z:.-]+$", max_length=JOB_ID_CHARS_MAX)]
Effort = Literal["minimal", "low", "medium", "high"]


def assistant_named(call: Call, name: str | None) -> Assistant:
    """The assistant of that name; without a name, the only one there is."""
    assistants = call.runtime.assistants
    if not assistants:
        raise NotConfigured("No assistant is configured. Add a table [assistants.NAME].")
    known = ", ".join(assistants)
    if name is None:
        if len(assistants) > 1:
            raise InvalidArgument(f"Name an assistant: {known}.", field="assistant")
        return next(iter(assistants.values()))
    if name not in assistants:
        raise InvalidArgument(
            f"There is no assistant {name!r}; there are {known}.", field="assistant"
        )
    return assistants[name]


class Chat(Arguments):
    session_id: SessionId
    instructions: str = Field(
        min_length=1, max_length=PACK_INSTRUCTIONS_CHARS_MAX, description="What to do or answer"
    )
    output_format: str = Field(
        "", max_length=PACK_INSTRUCTIONS_CHARS_MAX, description="How to write the answer"
    )
    context: list[Path] = Field(
        [],
        max_length=PACK_PATHS_MAX,
        description="Files and folders to know throughout; give all of them in every turn, only "
        "what changed is sent",
    )
    attachments: list[Path] = Field(
        [], max_length=PACK_PATHS_MAX, description="Files and folders to search in this turn only"
    )
    priority_context: list[Path] = Field(
        [], max_length=PACK_PATHS_MAX, description="Context to put into the prompt first"
    )
    structured_output_schema: dict[str, Any] | None = Field(
        None, description="JSON Schema that the answer has to fit"
    )
    reasoning_effort: Effort | None = None
    store_answer: StorePath | None = Field(
        None, description="Also write the answer to the knowledge base, at this path"
    )

    @field_validator("structured_output_schema")
    @classmethod
    def _require_small(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None:
            try:
                size_bytes = len(orjson.dumps(schema))
            except (TypeError, ValueError, RecursionError):
                raise ValueError("the schema cannot be written as JSON") from None
            if size_bytes > CONSULT_SCHEMA_BYTES_MAX:
                raise ValueError(f"the schema may have {CONSULT_SCHEMA_BYTES_MAX} bytes")
        return schema


class ChatResult(TypedDict):
    """The answer, or where to ask for it."""

    status: Literal["done", "running"]
    assistant: str
    session_id: str
    job_id: str
    next: NotRequired[str]
    """What to do for the answer, while the turn runs."""
    answer: NotRequired[str]
    structured: NotRequired[Any]
    turn: NotRequired[int]
    model: NotRequired[str]
    stop: NotRequired[str]
    sent: NotRequired[FileList]
    unchanged: NotRequired[FileList]
    store: NotRequired[FileList]
    attachments: NotRequired[FileList]
    left_out: NotRequired[LeftOutList]
    deleted: NotRequired[FileList]
    rewritten: NotRequired[str]
    tokens: NotRequired[TokensUsed]
    cost: NotRequired[float]
    cost_total: NotRequired[float]
    redacted: NotRequired[int]
    tool_calls: NotRequired[int]
    notes: NotRequired[list[str]]
    stored: NotRequired[StoredAnswer]

"""Arguments that tools about assistants have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from zibaldone.errors import InvalidArgument, NotConfigured
from zibaldone.limits import ASSISTANT_NAME_CHARS_MAX, PACK_PATH_CHARS_MAX, PACK_PATHS_MAX
from zibaldone.model.assistant import Assistant
from zibaldone.tools.spec import Call

Path = Annotated[str, Field(min_length=1, max_length=PACK_PATH_CHARS_MAX)]
Paths = Annotated[list[Path], Field(max_length=PACK_PATHS_MAX)]
AssistantName = Annotated[str, Field(max_length=ASSISTANT_NAME_CHARS_MAX)]


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

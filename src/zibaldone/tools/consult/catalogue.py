"""The tools of assistants: there where the settings have one."""

from __future__ import annotations

from collections.abc import Mapping

from zibaldone.model.assistant import Assistant
from zibaldone.tools.consult import ask_many, chat, sessions
from zibaldone.tools.spec import AnyTool


def consult_tools(assistants: Mapping[str, Assistant]) -> tuple[AnyTool, ...]:
    if not assistants:
        return ()
    return (
        *(chat.chat_tool(assistant) for assistant in assistants.values()),
        ask_many.TOOL,
        chat.START,
        chat.POLL,
        sessions.LIST,
        sessions.DESCRIBE,
        sessions.RESET,
    )

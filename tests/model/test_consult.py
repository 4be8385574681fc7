"""Messages are stored and read back as they were."""

from __future__ import annotations

import json

import pytest

from zibaldone.model.consult import Message, ToolCall, Usage


@pytest.mark.parametrize(
    "message",
    [
        Message("user", "What does it do?"),
        Message("user", "files", is_base=True),
        Message("assistant", "", (ToolCall("c1", "search_files", '{"query": '),)),
        Message("tool", "nothing was found", tool_call_id="c1"),
        Message("assistant", "Yes.", opaque=[{"type": "thinking", "signature": "é\u2028"}]),
    ],
)
def test_a_message_comes_back_from_json_as_it_was(message: Message) -> None:
    written = json.dumps(message.to_json())
    assert Message.from_json(json.loads(written)) == message
    assert json.dumps(Message.from_json(json.loads(written)).to_json()) == written


def test_usage_adds_up() -> None:
    assert Usage(10, 5, 1, 2) + Usage(1, 1, 1, 1) == Usage(11, 6, 2, 3)

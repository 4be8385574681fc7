"""The same attacks over standard input and output: the message that follows is still answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile.peers import call
from tests.hostile.test_diff import body
from tests.test_stdio import Stdio
from zibaldone.limits import TOOL_REQUEST_BYTES_MAX

MARKS = "a" + "\u0301\u0323" * 60_000
LISTS = b"[" + b"[]," * 8_000_000 + b"[]]"
NAMES = b"{%s}" % b",".join(b'"n%d":0' % number for number in range(2_000_000))

ATTACKS: dict[str, tuple[bytes, str]] = {
    "marks in a tag": (call("search_knowledge", {"query": "x", "tags": [MARKS]}), "character"),
    "marks in a title": (
        call("upload_document", {"path": "x", "content": "x", "title": MARKS}),
        "character",
    ),
    "a difference": (call("document_diff", {"path": "cycled", "older": 1, "newer": 2}), "+++"),
    "unknown names": (call("search_knowledge", {}).replace(b"{}", NAMES), "values"),
    "lists": (call("search_knowledge", {"tags": 0}).replace(b": 0}", b": %s}" % LISTS), "values"),
    "a long query": (
        call("search_knowledge", {"query": "x" * TOOL_REQUEST_BYTES_MAX}),
        "PAYLOAD_TOO_LARGE",
    ),
    "a long name": (call("n" * 1_000_000, {}), "Tool not allowed"),
}


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stdio]:
    data = tmp_path_factory.mktemp("hostile") / "data"
    with Stdio(data, "--profile", "all", environment={}) as running:
        for side in ("a", "b"):
            running.call("upload_document", path="cycled", content=body(side), upsert=True)
        yield running


@pytest.mark.parametrize("name", ATTACKS)
def test_the_next_message_is_answered(stdio: Stdio, name: str) -> None:
    attack, told = ATTACKS[name]
    stdio.write(attack)
    stdio.send("ping", request_id="next")
    answers: dict[Any, Any] = {}
    while len(answers) < 2:
        answer = stdio.read()
        answers[answer["id"]] = answer
    assert answers.pop("next")["result"] == {}
    (refusal,) = answers.values()
    written = json.dumps(refusal)
    assert told in written, written[:500]
    if name != "a difference":
        assert len(written) < 5_000


def test_a_batch_of_nested_values_is_measured_whole(stdio: Stdio) -> None:
    """What is nested too deep to be written again counts as long as its whole line."""
    stdio.ask("initialize", {"protocolVersion": "2025-03-26"})
    nested = b"[" * 500 + b"]" * 500
    given = b'{"query": "%s", "tags": %s}' % (b"x" * TOOL_REQUEST_BYTES_MAX, nested)
    stdio.write(b"[%s]" % call("search_knowledge", {}).replace(b"{}", given))
    (answer,) = stdio.read()
    assert "PAYLOAD_TOO_LARGE" in json.dumps(answer)

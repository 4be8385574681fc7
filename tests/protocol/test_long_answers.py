"""Answers that are made in pieces are the same as those made at once."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from zibaldone.access import presence
from zibaldone.access.presence import Presence
from zibaldone.errors import ResponseTooLarge
from zibaldone.limits import ANSWER_BYTES_MAX, LONG_ANSWER_BYTES
from zibaldone.protocol.jsonrpc import LongJson, dumps, dumps_pieces, escape_line_ends
from zibaldone.protocol.long_answers import dumps_long, escape_long_line, quoted, quoted_json

KEY = "key"

_TEXTS = [
    "",
    "short",
    "x" * (3 * LONG_ANSWER_BYTES),
    "\0" + 'a"\\\n\x01' * LONG_ANSWER_BYTES,
    "x" + "é" * LONG_ANSWER_BYTES,
    "xx" + "日" * LONG_ANSWER_BYTES,
    "xxx" + "\U0001f600" * LONG_ANSWER_BYTES,
    "\x85\u2028\u2029" * (LONG_ANSWER_BYTES // 2),
]


@pytest.mark.parametrize("text", _TEXTS, ids=range(len(_TEXTS)))
class TestTexts:
    @pytest.mark.parametrize("shape", ["member", "items", "mixed"])
    def test_an_answer(self, text: str, shape: str) -> None:
        shapes: dict[str, dict[str, Any]] = {
            "member": {"content": text, "tags": ["a"], "metadata": {"a": {"b": [1, None]}}},
            "items": {"items": [{"content": text, "n": 1}, {"error": {"code": "X"}}], "count": 2},
            "mixed": {"docs": [{"body": text}, "x", 1], "missing": ["y"], "note": text},
        }
        assert b"".join(asyncio.run(dumps_long(shapes[shape], KEY))) == dumps(shapes[shape])

    def test_one_text(self, text: str) -> None:
        assert dumps({"text": asyncio.run(quoted(text, KEY))}) == dumps({"text": text})

    def test_json_within_json(self, text: str) -> None:
        inner = dumps({"content": text})
        made = asyncio.run(quoted_json(LongJson([inner]), 0, KEY))
        assert dumps(made) == dumps(inner.decode())
        assert b"".join(dumps_pieces([1, {"a": made}, made])) == dumps([1, {"a": made}, made])

    def test_a_line(self, text: str) -> None:
        line = dumps({"content": text})
        made = b"".join(asyncio.run(escape_long_line([line])))
        assert made == escape_line_ends(line)
        assert len(made.decode().splitlines()) == 1
        assert orjson.loads(made) == {"content": text}


def test_others_run_between_the_pieces() -> None:
    async def run() -> int:
        turns = 0
        making = asyncio.create_task(dumps_long({"content": "x" * (8 * LONG_ANSWER_BYTES)}, KEY))
        while not making.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(run()) >= 8


@pytest.mark.parametrize("has_others", [False, True])
def test_they_pause_while_others_are_about(
    monkeypatch: pytest.MonkeyPatch, has_others: bool
) -> None:
    """One such answer after another would leave them only what is between the pieces."""
    callers = Presence()
    callers.note("another" if has_others else KEY)
    monkeypatch.setattr(presence, "CALLERS", callers)
    paused_s = 0.0
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        nonlocal paused_s
        paused_s += seconds
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    asyncio.run(dumps_long({"content": "x" * (8 * LONG_ANSWER_BYTES)}, KEY))
    assert (paused_s > 0.01) == has_others


def test_too_much_is_refused() -> None:
    """Before all of it is made."""
    controls = "\x01" * (ANSWER_BYTES_MAX // 6 + 1)
    with pytest.raises(ResponseTooLarge, match="in parts"):
        asyncio.run(dumps_long({"content": controls}, KEY))
    inner = dumps({"content": "\x01" * (ANSWER_BYTES_MAX // 12)})
    asyncio.run(quoted_json(LongJson([inner]), 0, KEY))
    with pytest.raises(ResponseTooLarge):
        asyncio.run(quoted_json(LongJson([inner]), len(inner), KEY))

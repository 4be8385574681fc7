"""A small project on disk, and a session that packs it turn by turn."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message
from zibaldone.pack.build import Ask, Packed, build
from zibaldone.pack.counts import Counts
from zibaldone.pack.stable import SessionState, with_reply
from zibaldone.pack.tokens import TokenCounter

LONG_AGO_S = 1_700_000_000

O200K = TokenCounter("o200k")


class Project:
    """Files with times of their own: each edit is a second later than the one before."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._edits = 0

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self._edits += 1
        self.set_time(name, LONG_AGO_S + self._edits)
        return path

    def words(self, name: str, number: int) -> Path:
        return self.write(name, "word " * number + "\n")

    def set_time(self, name: str, seconds: float) -> None:
        ns = int(seconds * 1e9)
        os.utime(self.root / name, ns=(ns, ns))

    def delete(self, name: str) -> None:
        (self.root / name).unlink()

    def assistant(self, **options: Any) -> Assistant:
        values: dict[str, Any] = {"roots": (str(self.root),), "model": "gpt-4.1", **options}
        return Assistant("reviewer", "openai", **values)

    def tokens(self, name: str, counts: Counts | None = None) -> int:
        """What a file takes in the prompt."""
        packed = build(self.assistant(), None, Ask(context=(name,)), counts=counts)
        return packed.placed[0].tokens


class Session:
    """Turns of one session, as long as the provider accepts each."""

    def __init__(self, assistant: Assistant) -> None:
        self.assistant = assistant
        self.state: SessionState | None = None
        self.counts = Counts()
        self.packed: list[Packed] = []

    def try_turn(self, *context: str, **options: Any) -> Packed:
        """A turn whose outcome is not recorded."""
        now_ns = options.pop("now_ns", None)
        ask = Ask(options.pop("instructions", "What is this?"), context=context, **options)
        more = {} if now_ns is None else {"now_ns": lambda: now_ns}
        return build(self.assistant, self.state, ask, counts=self.counts, **more)

    def turn(self, *context: str, **options: Any) -> Packed:
        packed = self.try_turn(*context, **options)
        reply = Message("assistant", "An answer.")
        self.state = with_reply(packed.state, [reply], self.assistant)
        self.packed.append(packed)
        return packed


def places(packed: Packed) -> dict[str, str]:
    return {file.path.removeprefix("project/"): file.place for file in packed.placed}


def at(packed: Packed, *wanted: str) -> set[str]:
    """The names of files at these places."""
    return {name for name, place in places(packed).items() if place in wanted}


def new_text(packed: Packed, before: Packed | None = None) -> str:
    """What a turn adds to the messages of the one before."""
    start = 0 if before is None or packed.is_rewritten else len(before.messages) + 1
    return "".join(message.text for message in packed.messages[start:])


def files_in(text: str) -> dict[str, str]:
    """The files in a prompt, read as a model should: from a head to the next tail of its number."""
    found: dict[str, str] = {}
    position = 0
    while head := re.compile(r"^<file (.+) (\d{9})>\n", re.MULTILINE).search(text, position):
        end = text.index(f"</file {head[2]}>\n", head.end())
        found[head[1].removeprefix("project/")] = text[head.end() : end]
        position = end
    return found

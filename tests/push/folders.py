"""Folders of notes, and pushes of them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.push.clock import Clock
from zibaldone.push.report import Report
from zibaldone.push.run import PushOptions, push_folder


class Folder:
    """A folder of notes, and a place for what was sent of it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "notes"
        self.state = path / "state"
        self.path.mkdir(parents=True, exist_ok=True)
        self._edits = 0

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        # Each edit at a time of its own, long ago: the walk alone tells what changed.
        self._edits += 1
        os.utime(file, (1_000_000 + self._edits, 1_000_000 + self._edits))

    def remove(self, name: str) -> None:
        (self.path / name).unlink()

    def texts(self) -> list[str]:
        return sorted(file.read_text(encoding="utf-8") for file in self.path.rglob("*.md"))

    def options(self, url: str, **more: Any) -> PushOptions:
        return PushOptions(folder=self.path, url=url, state_folder=self.state, **more)

    def push(self, url: str, **more: Any) -> Report:
        """With waits that take no time."""
        options = self.options(url, **more)
        retry = Clock().retry(options.tries, seconds=options.seconds_max)
        return asyncio.run(push_folder(options, retry=retry))

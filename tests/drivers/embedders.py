"""Embedders that count, fail or block, each on top of the hashed one."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from zibaldone.embed.hashed import Hashed
from zibaldone.embed.port import Vectors

PATIENCE_SECONDS = 20.0
"""How long a test waits for what must come."""


class Counting(Hashed):
    """Remembers what it was asked."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return super().embed(texts)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def taken(self) -> list[str]:
        """What was asked since the last look."""
        texts = self.texts
        self.calls.clear()
        return texts


class Failing(Counting):
    """Fails while `problem` is set: for every text, or for those that hold `only`."""

    def __init__(self, problem: Exception | None, only: str = "") -> None:
        super().__init__()
        self.problem = problem
        self._only = only

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed(texts)
        if self.problem is not None and any(self._only in text for text in texts):
            raise self.problem
        return vectors


class Blocking(Counting):
    """Waits in the middle of its work until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.may_go_on = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed(texts)
        self.begun.set()
        assert self.may_go_on.wait(PATIENCE_SECONDS)
        return vectors


class Clock:
    """Wall time that a test moves."""

    def __init__(self, at_us: int) -> None:
        self.at_us = at_us

    def __call__(self) -> int:
        return self.at_us

    def pass_seconds(self, seconds: float) -> None:
        self.at_us += int(seconds * 1_000_000)

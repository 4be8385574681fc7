"""Reads and writes that go on while something else happens."""

from __future__ import annotations

import threading

from tests.store.kept import Kept


class Load:
    """Somebody reads and writes all the time; whatever goes wrong is kept."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in "abc"]
        self.problems: list[BaseException] = []
        self.rounds = 0

    def _run(self, name: str) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                self._kept.create(f"{name}/{number}", "text")
                self._kept.update(f"{name}/{number}", body="other text")
                assert self._kept.ids(f"{name}/{number}") == [f"{name}/{number}"]
                self.rounds += 1
            except BaseException as problem:
                self.problems.append(problem)
                return

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, rounds: int) -> None:
        """Return when so many more rounds have been made."""
        wanted = self.rounds + rounds
        for _ in range(600):
            if self.rounds >= wanted or self.problems:
                return
            threading.Event().wait(0.05)
        raise AssertionError("nothing goes on")

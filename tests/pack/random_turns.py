"""Random histories of a project, turn after turn, held against what a model would have read.

    python -m tests.pack.random_turns [sessions] [turns]

After each turn: no file ever changed between prompt and store; the messages of the turn before are
the beginning of this one's unless a rewrite is announced; and whoever reads the messages and
believes the last copy of each file, what is said to be deleted and what is out of date, has the
inline files as they are on disk.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from pathlib import Path

from tests.pack.project import LONG_AGO_S, Project, Session, at, files_in, places
from zibaldone.pack.build import Packed


class History:
    """One session with random edits."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.project = Project(folder)
        self.random = random.Random(seed)
        for number in range(self.random.randrange(3, 15)):
            self._write(f"{self.random.choice('abc')}/{number}.txt")
        room = self.random.choice((200, 600, 1_500, 100_000))
        context = self.random.choice((6_000, 200_000))
        self.chat = Session(
            self.project.assistant(
                context_tokens=context, output_tokens=500, inline_tokens=min(room, context - 600)
            )
        )
        self.now_s = LONG_AGO_S + 10**6
        self.inline: set[str] = set()
        self.store: set[str] = set()
        self.rewrites = 0

    def turn(self) -> None:
        for _ in range(self.random.randrange(4)):
            self._edit()
        self.now_s += self.random.choice((1, 10, 1_000))
        context: tuple[str, ...] = (".",)
        if self.random.random() < 0.3:
            context = (*self.random.sample(["a", "b", "c"], 2),)
            context = (*(name for name in context if (self.project.root / name).is_dir()),)
        before = self.chat.packed[-1] if self.chat.packed else None
        packed = self.chat.turn(*context, now_ns=self.now_s * 10**9)
        self.inline |= at(packed, "inline", "unchanged")
        self.store |= at(packed, "store")
        self.rewrites += packed.is_rewritten
        self._check(packed, before)

    def _check(self, packed: Packed, before: Packed | None) -> None:
        assert not self.inline & self.store
        if before is not None and not packed.is_rewritten:
            assert packed.messages[: len(before.messages)] == before.messages
        known = read_as_a_model(packed)
        for name in at(packed, "inline", "unchanged"):
            assert known[name] == (self.project.root / name).read_text(), name
        for name, place in places(packed).items():
            if place == "left_out":
                assert name not in known
        assert packed.tokens.total <= self.chat.assistant.context_tokens - 500 or not at(
            packed, "inline"
        )

    def _edit(self) -> None:
        files = sorted(path for path in self.project.root.rglob("*.txt"))
        kind = self.random.choice(("new", "edit", "edit", "edit", "delete", "touch", "back"))
        if kind == "new" or not files:
            self._write(f"{self.random.choice('abc')}/{self.random.randrange(30)}.txt")
            return
        path = self.random.choice(files)
        name = path.relative_to(self.project.root).as_posix()
        if kind == "delete":
            path.unlink()
        elif kind == "touch":
            self.project.set_time(name, self.now_s)
        else:
            self._write(name)

    def _write(self, name: str) -> None:
        number = self.random.choice((1, 5, 20, 60, 200))
        text = " ".join(self.random.choices(["alpha", "</file", "beta", "<file", "\n"], k=number))
        self.project.write(name, text + "\n")


def read_as_a_model(packed: Packed) -> dict[str, str]:
    """The files that the messages say there are."""
    known: dict[str, str] = {}
    for message in packed.messages:
        if not message.is_base:
            continue
        if message.text.startswith("<tree>"):
            known = {}
        changes = message.text.partition("</changes>\n")[0]
        for row in re.findall(r"^(?:Deleted|\[left out\]).*?: (.*)$", changes, re.MULTILINE):
            for name in re.findall(r"project/(\S+)", row):
                known.pop(name, None)
        known.update(files_in(message.text))
    return known


def run(sessions: int, turns: int) -> int:
    """How many rewrites there were."""
    rewrites = 0
    for seed in range(sessions):
        with tempfile.TemporaryDirectory() as folder:
            history = History(Path(folder), seed)
            for number in range(turns):
                try:
                    history.turn()
                except AssertionError as error:
                    error.add_note(f"seed {seed}, turn {number}")
                    raise
            rewrites += history.rewrites
    return rewrites


if __name__ == "__main__":
    numbers = [*map(int, sys.argv[1:]), *(50, 30)[len(sys.argv) - 1 :]]
    sys.stdout.write(f"{numbers[0]} sessions of {numbers[1]} turns, {run(*numbers)} rewrites\n")

"""Ten turns with random edits on a real tree: what is sent, what a prompt cache serves, the bill.

    python -m benchmarks.pack [--tree FOLDER] [--files 2000] [--turns 10] [--edits 0.02]

The tree is a copy of installed packages' sources. Against it, in the same run: sending all files in
every turn, a bare walk that calls stat for every file, and the same walk by `os.walk`. A prompt
cache is taken to serve the longest common beginning of two requests, as providers' do. Prices are
relative to one token of input: .1 for a cached one and 1.25 for one that is written to the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from zibaldone.model.assistant import Assistant
from zibaldone.model.consult import Message
from zibaldone.pack.build import Ask, Packed, build
from zibaldone.pack.counts import Counts
from zibaldone.pack.stable import SessionState, with_reply
from zibaldone.pack.tokens import MESSAGE_TOKENS, TokenCounter, token_counter

T = TypeVar("T")

CACHED = 0.1
WRITTEN = 1.25
_PACKAGES = ("anthropic", "sqlalchemy", "mcp", "pydantic", "hypothesis", "pip", "openai")
_ROUNDS = 25


def copy_tree(target: Path, files_max: int) -> int:
    """So many source files of installed packages, with old times."""
    packages = Path(sysconfig.get_paths()["purelib"])
    copied = 0
    for package in _PACKAGES:
        for path in sorted((packages / package).rglob("*.py")):
            if copied == files_max:
                return copied
            place = target / path.relative_to(packages)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
            os.utime(place, (1_700_000_000 + copied, 1_700_000_000 + copied))
            copied += 1
    return copied


def edit(paths: Sequence[Path], share: float, generator: random.Random, turn: int) -> None:
    """Change a line of some files, add one to others."""
    for path in generator.sample(paths, max(1, int(len(paths) * share))):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        lines.insert(generator.randrange(len(lines) + 1), f"# edit {turn}\n")
        path.write_text("".join(lines), encoding="utf-8")
        at = 1_700_100_000 + turn
        os.utime(path, (at, at))


@dataclass(slots=True)
class Bill:
    """What a series of requests costs, in tokens of input."""

    counter: TokenCounter
    tokens: int = 0
    later_tokens: int = 0
    """From the second request on."""
    cached: int = 0
    cost: float = 0.0
    _last: tuple[Message, ...] = ()
    _tokens: dict[str, int] = field(default_factory=dict)

    def add(self, messages: tuple[Message, ...], system_tokens: int) -> None:
        total = system_tokens + sum(map(self._count, messages))
        served = system_tokens if self._last else 0
        for old, new in zip(self._last, messages, strict=False):
            if old == new:
                served += self._count(new)
                continue
            served += self.counter.count(new.text[: _common_chars(old.text, new.text)])
            break
        if self._last:
            self.later_tokens += total
        self.tokens += total
        self.cached += served
        self.cost += CACHED * served + WRITTEN * (total - served)
        self._last = messages

    def _count(self, message: Message) -> int:
        known = self._tokens.get(message.text)
        if known is None:
            known = self._tokens[message.text] = self.counter.count(message.text) + MESSAGE_TOKENS
        return known


def _common_chars(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class Run:
    """Turns of one session in one mode."""

    assistant: Assistant
    counts: Counts
    bill: Bill
    state: SessionState | None = None
    packed: list[Packed] = field(default_factory=list)

    def turn(self, context: str, number: int) -> None:
        ask = Ask(f"Question {number}: what does this do?", context=(context,))
        packed = build(self.assistant, self.state, ask, counts=self.counts)
        self.bill.add(packed.messages, self.bill.counter.count(packed.system))
        reply = Message("assistant", "It does what its name says. " * 40)
        self.state = with_reply(packed.state, [reply], self.assistant)
        self.packed.append(packed)


def bare_walk(folder: str) -> int:
    """The least that looking at a tree takes."""
    number = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                number += bare_walk(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                number += 1
    return number


def usual_walk(folder: str) -> int:
    number = 0
    for path, _, names in os.walk(folder):
        for name in names:
            os.stat(os.path.join(path, name))  # noqa: PTH116, PTH118
            number += 1
    return number


def timed(work: Callable[[], T]) -> tuple[float, float, T]:
    """Milliseconds by the clock and of the CPU."""
    clock, cpu = time.perf_counter(), time.process_time()
    outcome = work()
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3, outcome


def ratio(ours: Callable[[], object], other: Callable[[], object]) -> str:
    """Both in turn, so that a slow moment slows both: the medians by the clock, and the least CPU
    time that either took, which other work on the machine disturbs least."""
    pairs = [(timed(ours)[:2], timed(other)[:2]) for _ in range(_ROUNDS)]
    clock = statistics.median(a[0] / b[0] for a, b in pairs)
    ours_ms, other_ms = (min(pair[side][1] for pair in pairs) for side in (0, 1))
    return (
        f"CPU {ours_ms:.1f} ms against {other_ms:.1f} ms, {ours_ms / other_ms:.2f}; by the clock "
        f"{clock:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--edits", type=float, default=0.02)
    parser.add_argument("--window", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "tree"
        if options.tree is None:
            print(f"{copy_tree(root, options.files)} files")
        else:
            shutil.copytree(options.tree, root)
        measure(root, options.turns, options.edits, options.window)


def measure(root: Path, turns: int, share: float, window: int) -> None:
    assistant = Assistant(
        "bench", "openai", "gpt-4.1", roots=(str(root),), context_tokens=window, redact=True
    )
    counts = Counts()
    counter = token_counter(assistant)
    cold = timed(lambda: build(assistant, None, Ask(context=(str(root),)), counts=counts))
    print(f"cold build: {cold[0] / 1e3:.2f} s (CPU {cold[1] / 1e3:.2f} s)")
    full = replace(assistant, stable_inline=False)
    ours, others = (Run(mode, counts, Bill(counter)) for mode in (assistant, full))
    generator = random.Random(7)
    for turn in range(turns):
        for run in (ours, others):
            run.turn(str(root), turn)
        inline = [file.path for file in ours.packed[0].placed if file.place == "inline"]
        edit([root.parent / name for name in inline], share, generator, turn)
    sent = sum(packed.tokens.sent_new for packed in ours.packed)
    resend = sum(packed.tokens.full_resend for packed in ours.packed)
    print(f"inline {len(inline)} files, store {len(ours.packed[0].overflow)} files")
    print(f"context tokens: {sent} against {resend}, {1 - sent / resend:.1%} saved")
    for name, run in (("ours", ours), ("full resend", others)):
        bill = run.bill
        print(
            f"{name}: {bill.tokens} prompt tokens, {bill.cached / bill.tokens:.1%} cached "
            f"({bill.cached / bill.later_tokens:.1%} from the second turn on), cost {bill.cost:.0f}"
        )
    print(f"bill: {ours.bill.cost / others.bill.cost:.1%} of full resend's")
    after = ours.packed[-1].state
    listed = len(json.dumps(after.stable))
    rows = sum(len(name.encode()) + 16 for name in after.sent)
    print(f"state: list {listed} bytes, sent files {rows} bytes, tree {len(after.tree)} bytes")
    print(f"rewrites: {sum(packed.is_rewritten for packed in ours.packed)}")
    before = ours.state

    def changed() -> Packed:
        return build(assistant, before, Ask("Again?", context=(str(root),)), counts=counts)

    changed()
    against_walk = ratio(changed, lambda: bare_walk(str(root)))
    print(f"build with {share:.0%} of the files changed against a bare stat walk: {against_walk}")
    ours.turn(str(root), turns)
    state = ours.state

    def warm() -> Packed:
        return build(assistant, state, Ask("Again?", context=(str(root),)), counts=counts)

    warm()
    print(f"warm build against a bare stat walk: {ratio(warm, lambda: bare_walk(str(root)))}")
    print(f"… against os.walk and stat: {ratio(warm, lambda: usual_walk(str(root)))}")
    resent = replace(assistant, stable_inline=False)

    def resend_all() -> Packed:
        return build(resent, None, Ask("Again?", context=(str(root),)), counts=counts)

    print(f"warm build against building all of it: {ratio(warm, resend_all)}")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "counts.json"
        kept = Counts(cache)
        build(assistant, None, Ask(context=(str(root),)), counts=kept)
        kept.save()
        size = cache.stat().st_size
        fresh = timed(
            lambda: build(assistant, state, Ask(context=(str(root),)), counts=Counts(cache))
        )
        print(f"first build of a new process, with kept counts ({size} bytes): {fresh[0]:.0f} ms")


if __name__ == "__main__":
    main()

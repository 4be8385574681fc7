"""The kill storm: `make kills`, or `python -m tests.nightly.kills`.

KILLS           lives of a server, each ended by SIGKILL at a random moment      (10 000)
KILLS_SECONDS   stop after so long, whatever is left                        (no such bound)
KILLS_SEED      of all that is random but the timing                                 (1)
KILLS_STATE     a file that keeps the tally, so that a later run goes on from it  (none)

Clients write all the time and remember what was acknowledged. In the next life each looks at the
write whose answer never came (there as a whole, or not at all) and at some others. After some lives
the files are copied as they lie there and every table is compared with every other; after a hundred
the server is started once more, every document is read through it, the index has to get done, and
the store is checked thoroughly. Then a new folder is begun.

lost      an acknowledged write is not there
partial   a write is there in part: tables that do not agree, a text of no revision
doubled   a write is there twice
parked    a document the index gave up, though nothing is wrong with it but the kills
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from tests.drivers.index_state import assert_in_step
from tests.drivers.server import clean_environment, free_port
from tests.nightly.fuzz import say, scratch_folder
from tests.nightly.wire import Wire
from tests.store.backends import Sqlite
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.embed.hashed import Hashed
from zibaldone.limits import INDEX_LEASE_SECONDS, JOB_CRASHES_MAX, Limits
from zibaldone.store.open import DATABASE_NAME

WORLD_LIVES = 100
CHECK_EVERY_LIVES = 20
CLIENTS = 4
INDEX_EVERY_LIVES = JOB_CRASHES_MAX // 2
"""So often the index gets done before the writes begin. The product gives up a document that it was
indexing at so many deaths in a row (JOB_CRASHES_MAX), and on a machine without a free core a life
is over before the index is: without this, the storm would find that bound and nothing else."""
_WRITE_SECONDS_MAX = 0.2
_START_SHARE = 0.15
"""Kills that come while a server starts."""
_PATIENCE_SECONDS = 60.0
_RECHECKED = 1
_LONG_REPEATS = 20_000
"""Of words, for a document whose terms are stored in steps."""


@dataclass(slots=True)
class Tally:
    lives: int = 0
    acknowledged: int = 0
    unanswered_kept: int = 0
    """Writes without an answer that are there as a whole, as they may be."""
    lost: int = 0
    partial: int = 0
    doubled: int = 0
    parked: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.problems

    def note(self, kind: str, what: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.problems.append(f"{kind}: {what}"[:1_000])
        say(f"FINDING {self.problems[-1]}")

    def line(self) -> str:
        return (
            f"{self.lives} lives, {self.acknowledged} acknowledged, {self.lost} lost, "
            f"{self.partial} partial, {self.doubled} doubled, {self.parked} parked "
            f"({self.lives / max(self.seconds, 0.001):.1f} lives/s)"
        )


@dataclass(frozen=True, slots=True)
class State:
    """A document as a client believes it to be; no content: deleted, or never there."""

    revision: int = 0
    content: str | None = None


@dataclass(slots=True)
class Client:
    """Writes to paths of its own, one write at a time."""

    name: str
    chance: random.Random
    tally: Tally
    known: dict[str, State] = field(default_factory=dict)
    pending: tuple[str, State] | None = None
    """The write that was sent and not answered."""

    async def live(self, port: int, on_writing: Callable[[], None] = lambda: None) -> None:
        """Look at what the last kill left, then write until the server is gone."""
        with contextlib.suppress(ConnectionError):
            async with Wire(port) as wire:
                await self._settle(wire)
                on_writing()
                while True:
                    await self._write(wire)

    async def _settle(self, wire: Wire) -> None:
        if self.pending is not None:
            path, after = self.pending
            found = await self._look(wire, path, {self.known.get(path, State()), after})
            self.tally.unanswered_kept += found == after
            self.known[path] = found
            self.pending = None
        for path in self.chance.sample(sorted(self.known), min(_RECHECKED, len(self.known))):
            self.known[path] = await self._look(wire, path, {self.known[path]})

    async def _look(self, wire: Wire, path: str, allowed: set[State]) -> State:
        found = await read_state(wire, path)
        if found not in allowed:
            newest = max(state.revision for state in allowed)
            oldest = min(state.revision for state in allowed)
            kind = "partial"
            if found.revision < oldest:
                kind = "lost"
            elif found.revision > newest:
                kind = "doubled"
            self.tally.note(kind, f"{path} is {_shown(found)}, not {[*map(_shown, allowed)]}")
        return found

    async def _write(self, wire: Wire) -> None:
        method, target, path, body, after = self._next()
        self.pending = (path, after)
        status, answer = await wire.request(method, target, body)
        if status >= 300 or answer["revision"] != after.revision:
            kind = "doubled" if status == 409 else "lost" if status == 404 else "partial"
            self.tally.note(kind, f"{method} {path}: {status} {answer}")
            self.known[path] = await read_state(wire, path)
        else:
            self.known[path] = after
            self.tally.acknowledged += 1
        self.pending = None

    def _next(self) -> tuple[str, str, str, Any, State]:
        live = [path for path, state in self.known.items() if state.content is not None]
        kind = self.chance.choices(
            ("create", "update", "patch", "title", "delete"), (3, 3, 3, 1, 1)
        )[0]
        if kind == "create" or not live:
            free = [n for n in range(60) if self.known.get(self._path(n), State()).content is None]
            path = self._path(self.chance.choice(free)) if free else self.chance.choice(live)
            kind = "create" if free else "update"
        else:
            path = self.chance.choice(live)
        before = self.known.get(path, State())
        revision = before.revision + 1
        target = f"/documents/{path}"
        known = {"last_known_revision": before.revision}
        match kind:
            case "create":
                after = State(revision, self._text(path, revision))
                return "POST", "/documents", path, {"path": path, "content": after.content}, after
            case "update":
                after = State(revision, self._text(path, revision))
                return "PUT", target, path, {"content": after.content, **known}, after
            case "patch":
                old, new = _mark(path, before.revision), _mark(path, revision)
                text = str(before.content)
                if old not in text:  # only its title was changed last time
                    old, new = "# ", f"# {new} "
                after = State(revision, text.replace(old, new, 1))
                return "PATCH", target, path, {"old_str": old, "new_str": new, **known}, after
            case "title":
                after = State(revision, before.content)
                return "PUT", target, path, {"title": f"Title {revision}", **known}, after
        return "DELETE", target, path, None, State(revision)

    def _path(self, number: int) -> str:
        return f"{self.name}/{number}"

    def _text(self, path: str, revision: int) -> str:
        repeats = self.chance.choices((0, 5, 60, 400, _LONG_REPEATS), (50, 50, 50, 50, 1))[0]
        filler = "and some more words. " * repeats
        return f"# {path}\n\nThis is {_mark(path, revision)}.\n\n{filler}"


def _mark(path: str, revision: int) -> str:
    """A word that only this revision of this document has."""
    return f"mark{path.replace('/', 'p')}r{revision}x"


def _shown(state: State) -> str:
    return f"revision {state.revision}, {None if state.content is None else hash(state.content)}"


async def read_state(wire: Wire, path: str) -> State:
    status, found = await wire.request("GET", f"/documents/{path}")
    if status == 200:
        return State(found["revision"], found["content"])
    status, history = await wire.request("GET", f"/documents/{path}/revisions")
    return State(history["revisions"][0]["revision"]) if status == 200 else State()


class Nursery:
    def __init__(self, folder: Path) -> None:
        self._log = folder / "lives.log"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.nightly.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=clean_environment({"ZIBALDONE_EMBEDDER": "hashed", "OPENBLAS_NUM_THREADS": "1"}),
        )

    def birth(self, data: Path, port: int, clock_seconds: float, embed_seconds: float) -> int:
        wanted = {
            "port": port,
            "data": str(data),
            "log": str(self._log),
            "clock_seconds": clock_seconds,
            "embed_seconds": embed_seconds,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def close(self) -> None:
        self._process.communicate(timeout=10)  # the end of its input ends it


@contextmanager
def nursery(folder: Path) -> Iterator[Nursery]:
    started = Nursery(folder)
    try:
        yield started
    finally:
        started.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(pid: int, seconds_max: float) -> bool:
    until_s = time.monotonic() + seconds_max
    while is_alive(pid):
        if time.monotonic() > until_s:
            return False
        await asyncio.sleep(0.001)
    return True


async def accepts(port: int, pid: int, seconds_max: float) -> bool:
    """Whether the server came up in that time."""
    until_s = time.monotonic() + seconds_max
    while time.monotonic() < until_s and is_alive(pid):
        with contextlib.suppress(OSError):
            async with Wire(port):
                return True
        await asyncio.sleep(0.003)
    return False


class World:
    """One folder, from its first life to its last check."""

    def __init__(
        self, folder: Path, number: int, seed: int, nursery: Nursery, tally: Tally
    ) -> None:
        self._folder = folder
        self._data = folder / f"world{number}"
        self._chance = random.Random(f"{seed}.{number}")
        self._nursery = nursery
        self._tally = tally
        self._clock_s = 0.0
        self._embed_s = 0.02 if number % 2 else 0.0
        self._clients = [
            Client(f"c{n}", random.Random(f"{seed}.{number}.{n}"), tally) for n in range(CLIENTS)
        ]

    async def run(self, lives: int) -> None:
        for number in range(1, lives + 1):
            await self._life(is_index_awaited=number % INDEX_EVERY_LIVES == 0)
            if number % CHECK_EVERY_LIVES == 0:
                await asyncio.to_thread(self._compare_tables)
        await self._last_life()
        shutil.rmtree(self._data, ignore_errors=True)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[tuple[int, int]]:
        # A life later than the last by more than a lease: what the last one held is free.
        self._clock_s += INDEX_LEASE_SECONDS + 1
        port = free_port()
        pid = self._nursery.birth(self._data, port, self._clock_s, self._embed_s)
        try:
            yield port, pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            assert await until_gone(pid, 10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # processes of its own that it left behind

    async def _life(self, *, is_index_awaited: bool) -> None:
        async with self._server() as (port, pid):
            if not is_index_awaited and self._chance.random() < _START_SHARE:
                await asyncio.sleep(self._chance.uniform(0, 0.1))
                writing = [asyncio.create_task(client.live(port)) for client in self._clients]
            else:
                if not await accepts(port, pid, _PATIENCE_SECONDS):
                    self._tally.note(
                        "partial", f"no start after a kill: {self._nursery.log()[-600:]}"
                    )
                if is_index_awaited:
                    async with Wire(port) as wire:
                        await self._until_indexed(wire)
                is_writing = asyncio.Event()
                writing = [
                    asyncio.create_task(client.live(port, is_writing.set))
                    for client in self._clients
                ]
                await asyncio.wait_for(is_writing.wait(), _PATIENCE_SECONDS)
                await asyncio.sleep(self._chance.uniform(0, _WRITE_SECONDS_MAX))
        self._tally.lives += 1
        await asyncio.wait_for(asyncio.gather(*writing), _PATIENCE_SECONDS)

    def _compare_tables(self) -> None:
        """In a copy, so that it is the next life that has to recover."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
            if (self._data / name).exists():
                shutil.copyfile(self._data / name, copy / name)
        if (copy / DATABASE_NAME).exists():
            self._note_broken(broken_invariants(copy / DATABASE_NAME))

    def _note_broken(self, broken: dict[str, Any]) -> None:
        for what, rows in broken.items():
            self._tally.note("doubled" if "twice" in what else "partial", f"{what}: {rows}")

    async def _last_life(self) -> None:
        """Not killed: all is read through it, the index gets done, and it ends in order."""
        async with self._server() as (port, pid):
            assert await accepts(port, pid, _PATIENCE_SECONDS), self._nursery.log()[-2_000:]
            async with Wire(port) as wire:
                for client in self._clients:
                    await client._settle(wire)
                    for path, state in client.known.items():
                        await client._look(wire, path, {state})
                await self._compare_listing(wire)
                is_indexed = await self._until_indexed(wire)
            await self._until_settled()
            os.kill(pid, signal.SIGTERM)
            if not await until_gone(pid, 20):
                self._tally.note("partial", "SIGTERM did not end the server in 20 s")
        store = Sqlite(self._data)
        self._note_broken(broken_invariants(store.file))
        opened = store.open(Limits())
        try:
            checked = await opened.check(thorough=True)
        finally:
            opened.close()
        if not checked.ok:
            self._tally.note("partial", f"the store's check: {checked.problems}")
        try:
            if is_indexed:
                assert_in_step(store, Hashed())
        except AssertionError as problem:
            self._tally.note("partial", f"the vectors are not those of the texts: {problem}")

    async def _until_settled(self) -> None:
        """Terms that a killed server did not get to are stored by the next."""
        reading = apsw.Connection(str(self._data / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
        until_s = time.monotonic() + _PATIENCE_SECONDS
        try:
            while left := reading.execute("SELECT count(*) FROM unsettled_terms").get:
                if time.monotonic() > until_s:
                    self._tally.note("partial", f"the terms of {left} chunks are missing")
                    return
                await asyncio.sleep(0.1)
        finally:
            reading.close()

    async def _compare_listing(self, wire: Wire) -> None:
        wanted = {
            path
            for client in self._clients
            for path, state in client.known.items()
            if state.content is not None
        }
        listed: list[str] = []
        offset = 0
        while True:
            _, page = await wire.request("GET", f"/documents?limit=100&offset={offset}")
            listed += [item["document_id"] for item in page["items"]]
            offset += 100
            if len(page["items"]) < 100:
                break
        if len(listed) != len(set(listed)):
            self._tally.note("doubled", "a document is listed twice")
        for path in wanted - set(listed):
            self._tally.note("lost", f"{path} is not listed")
        for path in set(listed) - wanted:
            self._tally.note("partial", f"{path} is listed and was never acknowledged or seen")

    async def _until_indexed(self, wire: Wire) -> bool:
        until_s = time.monotonic() + _PATIENCE_SECONDS
        while True:
            _, health = await wire.request("GET", "/health")
            index = health["services"]["index"]
            if index.get("failed"):
                _, jobs = await wire.request("GET", "/jobs?kind=vectors&state=parked")
                self._tally.note("parked", f"{index['failed']} documents: {jobs}")
                return False
            if index.get("pending") == 0:  # not there: the store could not be asked just now
                return True
            if time.monotonic() > until_s:
                self._tally.note("partial", f"the index does not get done: {index}")
                return False
            await asyncio.sleep(0.1)


async def storm(
    kills: int, seconds_max: float, seed: int, folder: Path, tally: Tally, first_world: int = 0
) -> Tally:
    until_s = time.monotonic() + seconds_max
    before_s, started_s = tally.seconds, time.monotonic()
    with nursery(folder) as births:
        world = first_world
        while tally.lives < kills and time.monotonic() < until_s:
            lives = min(WORLD_LIVES, kills - tally.lives)
            await World(folder, world, seed, births, tally).run(lives)
            world += 1
            tally.seconds = before_s + time.monotonic() - started_s
            say(tally.line())
        if "Traceback" in births.log():
            at = births.log().index("Traceback")
            tally.problems.append(f"a server logged: {births.log()[at : at + 1_500]}")
    return tally


def main() -> int:
    given = os.environ.get
    state = Path(given("KILLS_STATE", "")) if given("KILLS_STATE") else None
    tally = Tally()
    if state is not None and state.exists():
        tally = Tally(**json.loads(state.read_text()))
    with scratch_folder() as folder:
        asyncio.run(
            storm(
                int(given("KILLS", "10000")),
                float(given("KILLS_SECONDS", "inf")),
                int(given("KILLS_SEED", "1")),
                folder,
                tally,
                first_world=tally.lives // WORLD_LIVES,
            )
        )
    if state is not None:
        state.write_text(json.dumps(dataclasses.asdict(tally)))
    for problem in tally.problems:
        say(problem)
    say(tally.line())
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())

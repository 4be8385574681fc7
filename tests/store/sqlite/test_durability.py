"""An acknowledged write is there after kill -9; one that was not is there whole or not at all."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import httpx2 as httpx
import pytest

from tests.drivers.server import Server, clean_environment
from tests.store.kept import Kept
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.limits import Limits
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.sqlite.store import SqliteStore

REPOSITORY = Path(__file__).parents[3]
ROUNDS = 8
WRITES_PER_ROUND = 160
CLIENTS = 4
QUIET = ("--log-level", "warning")


@dataclass(frozen=True, slots=True)
class State:
    """What a client believes of a document; no content: it is deleted, or was never there."""

    revision: int = 0
    content: str | None = None


@dataclass(slots=True)
class Client:
    """Writes to paths of its own and remembers what was acknowledged."""

    name: str
    random: random.Random
    acknowledged: dict[str, State] = field(default_factory=dict)
    in_flight: tuple[str, State] | None = None
    """The one write whose answer never came."""
    writes: int = 0

    def run(self, url: str, on_write: Callable[[], None]) -> None:
        """Write until the server is gone."""
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as http:
            while True:
                method, path, body, after = self._next()
                self.in_flight = (path, after)
                url_path = "/documents" if method == "POST" else f"/documents/{path}"
                try:
                    answer = http.request(method, url_path, json=body)
                except httpx.TransportError:
                    return
                assert answer.is_success, answer.text
                assert answer.json()["revision"] == after.revision
                self.acknowledged[path] = after
                self.in_flight = None
                self.writes += 1
                on_write()

    def _next(self) -> tuple[str, str, dict[str, Any] | None, State]:
        known = [path for path, state in self.acknowledged.items() if state.content is not None]
        kind = self.random.choices(("create", "update", "patch", "delete"), (4, 3, 4, 1))[0]
        if kind == "create" or not known:
            path = f"{self.name}/{self.random.randrange(60)}"
            if self.acknowledged.get(path, State()).content is not None:
                path = f"{self.name}/new{self.writes}-{len(self.acknowledged)}"
            after = self._after(path)
            return "POST", path, {"path": path, "content": after.content}, after
        path = self.random.choice(known)
        before = self.acknowledged[path]
        if kind == "update":
            after = self._after(path)
            return "PUT", path, {"content": after.content}, after
        if kind == "patch":
            assert before.content is not None
            old, new = (
                _mark(self.name, path, before.revision),
                _mark(self.name, path, before.revision + 1),
            )
            after = State(before.revision + 1, before.content.replace(old, new))
            return "PATCH", path, {"old_str": old, "new_str": new}, after
        return "DELETE", path, None, State(before.revision + 1, None)

    def _after(self, path: str) -> State:
        revision = self.acknowledged.get(path, State()).revision + 1
        filler = "and some more words. " * self.random.randrange(200)
        mark = _mark(self.name, path, revision)
        return State(revision, f"# {path}\n\nThis is {mark}.\n\n{filler}")


def _mark(name: str, path: str, revision: int) -> str:
    """A word that only this revision of this document has."""
    number = path.partition("/")[2].replace("-", "x")
    return f"mark{name}p{number}r{revision}"


def possible(client: Client, path: str) -> set[State]:
    states = {client.acknowledged.get(path, State())}
    if client.in_flight is not None and client.in_flight[0] == path:
        states.add(client.in_flight[1])
    return states


def settle(client: Client, read: Callable[[str], State]) -> None:
    """Compare with what is there, and go on from that."""
    paths = {*client.acknowledged, *([client.in_flight[0]] if client.in_flight else [])}
    for path in paths:
        found = read(path)
        assert found in possible(client, path), path
        if found.revision:
            client.acknowledged[path] = found
    client.in_flight = None


def read_through(server: Server) -> Callable[[str], State]:
    def read(path: str) -> State:
        answer = server.client.get(f"/documents/{path}")
        if answer.status_code == 200:
            found = answer.json()
            assert found["truncated"] is False
            return State(found["revision"], found["content"])
        assert answer.status_code == 404, answer.text
        history = server.client.get(f"/documents/{path}/revisions").json()
        return State(history["revisions"][0]["revision"]) if "revisions" in history else State()

    return read


def read_from(folder: Path) -> Callable[[str], State]:
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    try:
        states = {
            path: State(revision, None if is_deleted else body)
            for path, revision, is_deleted, body in connection.execute(
                "SELECT document_id, revision, deleted_at_us IS NOT NULL, body "
                "FROM documents JOIN bodies USING (document_key)"
            )
        }
    finally:
        connection.close()
    return lambda path: states.get(path, State())


def write_until_killed(server: Server, clients: list[Client], writes_max: int) -> None:
    count, enough = 0, threading.Event()
    lock = threading.Lock()

    def on_write() -> None:
        nonlocal count
        with lock:
            count += 1
            if count >= writes_max:
                enough.set()

    with ThreadPoolExecutor(len(clients)) as threads:
        runs = [threads.submit(client.run, server.url, on_write) for client in clients]
        for run in runs:
            run.add_done_callback(lambda _: enough.set())  # it failed: do not wait for more
        assert enough.wait(60)
        server.kill()  # with writes of all clients under way
    for run in runs:
        run.result()


def copied(folder: Path, target: Path) -> Path:
    """The file and its WAL as they lie there; what was only in memory is gone, as after a crash."""
    target.mkdir()
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)
    return target


def assert_found_by_words(kept: Kept, clients: list[Client]) -> None:
    for client in clients:
        for path, state in client.acknowledged.items():
            mark = _mark(client.name, path, state.revision)
            before = _mark(client.name, path, state.revision - 1)
            assert kept.found(mark) == (set() if state.content is None else {path})
            assert kept.found(before) == set()


@pytest.mark.timeout(240)
def test_every_acknowledged_write_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(20261115)
    clients = [Client(f"c{number}", random.Random(number)) for number in range(CLIENTS)]
    with Server(tmp_path / "data", arguments=QUIET) as server:
        for number in range(ROUNDS):
            writes_max = chance.randrange(WRITES_PER_ROUND * 3 // 4, WRITES_PER_ROUND * 5 // 4)
            write_until_killed(server, clients, writes_max)
            copy = copied(tmp_path / "data", tmp_path / f"copy{number}")
            for client in clients:
                settle(client, read_from(copy))
            assert broken_invariants(copy / DATABASE_NAME) == {}, f"round {number}"
            server.start()
        for client in clients:
            settle(client, read_through(server))
    assert sum(client.writes for client in clients) >= 1_000
    store = open_store(store_url(tmp_path / "data"), Limits())
    assert_found_by_words(Kept(store, Limits()), clients)
    store.close()
    assert broken_invariants(tmp_path / "data" / DATABASE_NAME) == {}


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, Client]:
    """The files of a server that was killed while it wrote, and the client that was writing."""
    client = Client("c", random.Random(1))
    with Server(tmp_path / "data", arguments=QUIET) as server:
        write_until_killed(server, [client], 60)
    return tmp_path / "data", client


def audited(folder: Path) -> list[tuple[str, int]]:
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    try:
        return list(
            connection.execute("SELECT document_id, revision FROM audit ORDER BY audit_key")
        )
    finally:
        connection.close()


def test_a_wal_that_ends_anywhere_gives_an_earlier_whole_state(
    killed: tuple[Path, Client], tmp_path: Path
) -> None:
    """What a power cut leaves of writes that were not acknowledged: any part of the WAL's end."""
    folder, client = killed
    whole = audited(copied(folder, tmp_path / "whole"))
    assert len(whole) >= client.writes
    wal_name = f"{DATABASE_NAME}-wal"
    size_bytes = (folder / wal_name).stat().st_size
    chance = random.Random(7)
    lengths = set()
    for number in range(12):
        copy = copied(folder, tmp_path / f"torn{number}")
        with (copy / wal_name).open("r+b") as wal:
            cut = chance.randrange(size_bytes)
            if number % 2:
                wal.truncate(cut)
            else:  # the length is there, but the blocks behind it never were written
                wal.seek(cut)
                wal.write(bytes(min(5_000, size_bytes - cut)))
        assert broken_invariants(copy / DATABASE_NAME) == {}
        kept = audited(copy)
        assert kept == whole[: len(kept)]
        lengths.add(len(kept))
    assert len(lengths) > 3


def connections(store: SqliteStore) -> dict[str, apsw.Connection]:
    return {
        "writer": store._writer._connection.raw,
        "quick": store._quick.raw,
        "reader": asyncio.run(store._readers.run(lambda connection: connection.raw)),
    }


def test_the_pragmas_that_durability_rests_on_are_in_force(tmp_path: Path) -> None:
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL: the WAL is synced at every commit
        "fullfsync": 1,
        "checkpoint_fullfsync": 1,
        "foreign_keys": 1,
        "temp_store": 2,
        "journal_size_limit": 64 * 1024 * 1024,
        "trusted_schema": 0,
        "locking_mode": "normal",
        "cache_size": -32768,
    }
    store = SqliteStore(tmp_path / DATABASE_NAME, Limits())
    try:
        for name, raw in connections(store).items():
            found = {pragma: raw.execute(f"PRAGMA {pragma}").get for pragma in expected}
            assert found == expected, name
    finally:
        store.close()


TRACED = """
import asyncio, os, sys
from pathlib import Path
from zibaldone.limits import Limits
from zibaldone.store.open import open_store, store_url
from tests.store.kept import Kept

kept = Kept(open_store(store_url(Path(sys.argv[1])), Limits()), Limits())
os.write(1, b"begin")
for number in range(5):
    kept.create(f"d/{number}", "text " * 500)
    os.write(1, b"acknowledged")
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="looks at system calls with strace")
def test_the_wal_is_on_disk_before_a_write_is_acknowledged(tmp_path: Path) -> None:
    """What no kill can show, as the system's memory outlives the process: the order of calls."""
    log = tmp_path / "calls"
    calls = "trace=write,pwrite64,fsync,fdatasync"
    trace = ["strace", "-f", "-y", "-e", calls, "-s", "16", "-o", str(log)]
    done = subprocess.run(
        [*trace, sys.executable, "-c", TRACED, str(tmp_path / "data")],
        capture_output=True, env=clean_environment(), cwd=REPOSITORY, check=False,
    )  # fmt: skip
    if done.returncode and b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    acknowledged, unsynced = 0, None
    _, _, lines = log.read_text().partition('"begin"')
    for line in lines.splitlines():
        if "pwrite64(" in line and "-wal>" in line:
            unsynced = line
        elif ("fdatasync(" in line or "fsync(" in line) and "-wal>" in line:
            unsynced = None
        elif '"acknowledged"' in line:
            assert unsynced is None
            acknowledged += 1
            unsynced = "nothing was written since the last one"
    assert acknowledged == 5


def test_closing_leaves_one_whole_file(tmp_path: Path) -> None:
    """So that copying zibaldone.db of a stopped server is a backup."""
    store = open_store(store_url(tmp_path), Limits())
    Kept(store, Limits()).create("a", "zebra")
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == [DATABASE_NAME]


def test_the_invariants_notice_what_is_missing(tmp_path: Path) -> None:
    """Each of these is a write of which one part was lost."""
    losses = (
        "DELETE FROM bodies WHERE document_key = 1",
        "DELETE FROM revisions WHERE document_key = 1 AND revision = 1",
        "DELETE FROM audit WHERE revision = 2",
        "DELETE FROM jobs WHERE payload ->> 'revision' = 2",
        "DELETE FROM chunks WHERE document_key = 1",
        "DELETE FROM chunk_terms WHERE rowid IN (SELECT chunk_key FROM chunks)",
        "UPDATE documents SET revision = 3 WHERE document_key = 1",
        "UPDATE bodies SET body = 'another' WHERE document_key = 1",
        "UPDATE documents SET deleted_at_us = 1 WHERE document_key = 1",
        "DELETE FROM documents WHERE document_key = 1",
    )
    store = open_store(store_url(tmp_path / "data"), Limits())
    kept = Kept(store, Limits())
    kept.create("a", "one")
    kept.update("a", body="two")
    kept.create("b", "three")
    store.close()
    assert broken_invariants(tmp_path / "data" / DATABASE_NAME) == {}
    for number, loss in enumerate(losses):
        copy = copied(tmp_path / "data", tmp_path / f"loss{number}")
        connection = apsw.Connection(str(copy / DATABASE_NAME))
        connection.execute(loss)
        assert connection.changes() >= 1 or "chunk_terms" in loss
        connection.close()
        assert broken_invariants(copy / DATABASE_NAME) != {}, loss

"""kill -9 at any moment of indexing: the store heals to exactly the right vectors."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import httpx2 as httpx

from tests.drivers.embedders import PATIENCE_SECONDS
from tests.drivers.engines import backend_of
from tests.drivers.index_state import assert_in_step, right_vectors, stored_vectors
from tests.drivers.server import Server
from tests.store.backends import Backend
from zibaldone.embed.hashed import Hashed

ROUNDS = 4
CLIENTS = 3
EMBEDDER = Hashed()


class Writer:
    """Creates, changes and deletes documents of some length, until the server is gone."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._luck = random.Random(seed)
        self.paths: set[str] = set()

    def run(self, url: str, on_write: threading.Event) -> None:
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            try:
                while True:
                    self._write(client)
                    on_write.set()
            except httpx.TransportError:
                return

    def _write(self, client: httpx.Client) -> None:
        kind = self._luck.choices(("create", "update", "delete"), (5, 3, 2))[0]
        if kind == "create" or not self.paths:
            path = f"{self._name}/{self._luck.randrange(10**9)}"
            body = {"path": path, "content": self._text()}
            assert client.post("/documents", json=body).status_code == 201
            self.paths.add(path)
            return
        path = self._luck.choice(sorted(self.paths))
        if kind == "update":
            answer = client.put(f"/documents/{path}", json={"content": self._text()})
        else:
            answer = client.delete(f"/documents/{path}")
            self.paths.discard(path)
        # One whose answer was lost when the server was killed may be gone already.
        assert answer.status_code in (200, 404), answer.text

    def _text(self) -> str:
        return "\n\n".join(
            f"Paragraph {self._luck.random()}. " + "Some words to fill it up. " * 35
            for _ in range(self._luck.randrange(1, 12))
        )


def let_leases_end(tables: Backend) -> None:
    """As the time does in which nobody renews them; the test does not wait for it."""
    tables.execute("UPDATE jobs SET leased_until_us = 0 WHERE state = 1")


def assert_ready_is_true(tables: Backend) -> None:
    """Whatever the moment: what is said to be ready is, and no vector is wrong or left over."""
    stored, right = stored_vectors(tables, EMBEDDER.identity), right_vectors(tables, EMBEDDER)
    assert {key: vector for key, vector in right.items() if key in stored} == stored
    ready = tables.query(
        "SELECT c.chunk_key FROM chunks c JOIN documents d USING (document_key) "
        "WHERE d.vector_status = 'ready' AND d.deleted_at_us IS NULL"
    )
    assert {key for (key,) in ready} <= stored.keys()


def test_the_store_heals_to_exactly_the_right_vectors(data: Path) -> None:
    luck = random.Random(11)
    tables = backend_of(data)
    server = Server(data, environment={"ZIBALDONE_EMBEDDER": "hashed"})
    writers = [Writer(f"w{number}", number) for number in range(CLIENTS)]
    unfinished = 0
    for _ in range(ROUNDS):
        server.start()
        has_written = threading.Event()
        threads = [
            threading.Thread(target=writer.run, args=(server.url, has_written))
            for writer in writers
        ]
        for thread in threads:
            thread.start()
        assert has_written.wait(PATIENCE_SECONDS)
        time.sleep(luck.uniform(0.05, 0.9))  # the moment is what this test varies
        server.kill()
        for thread in threads:
            thread.join()
        assert_ready_is_true(tables)
        unfinished += len(tables.query("SELECT 1 FROM jobs WHERE kind = 'vectors'"))
        let_leases_end(tables)
    assert unfinished, "no kill ever came in the middle of something"
    with server:
        deadline_s = time.monotonic() + 60
        while (
            tables.query("SELECT 1 FROM jobs WHERE kind = 'vectors'")
            and time.monotonic() < deadline_s
        ):
            time.sleep(0.05)
    assert_in_step(tables, EMBEDDER)
    assert len(stored_vectors(tables, EMBEDDER.identity)) > 50
    assert "Traceback" not in server.log()

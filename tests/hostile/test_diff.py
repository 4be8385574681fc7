"""Differences that take long: four of them kept every reader busy for minutes."""

from __future__ import annotations

import string
import time
from concurrent.futures import ThreadPoolExecutor

from tests.drivers.server import Server
from tests.hostile.peers import Bystander

_LINES = 19_998


def body(side: str) -> str:
    """Even lines cycle through 52 values, odd ones are only on this side."""
    letters = string.ascii_letters
    return "\n".join(letters[n // 2 % 52] if n % 2 == 0 else f"{side}{n}" for n in range(_LINES))


def test_slow_differences_leave_readers_for_others(server: Server) -> None:
    server.create("cycled", body("a"))
    server.client.put("/documents/cycled", json={"content": body("b")}).raise_for_status()

    def diff(_: int) -> int:
        path = "/documents/cycled/revisions/diff?older=1&newer=2"
        return server.client.get(path).status_code

    started_s = time.perf_counter()
    with Bystander(server), ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(diff, range(8)))
        # A search needs a reader, which the bystander's small reads do not.
        found = server.client.get("/search", params={"query": "a19997"}).status_code
    assert (statuses, found) == ([200] * 8, 200)
    assert time.perf_counter() - started_s < 40

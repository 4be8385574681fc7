"""A standby takes over: `make failover`, or `python -m tests.several.failover`.

FAILOVER_ROUNDS     how often the primary is killed                     (10)
FAILOVER_SECONDS    of writing before each kill and after each promotion (5)

Two PostgreSQL servers, of which one follows the other synchronously; three servers of ours on both,
by a URL that names both hosts; six clients that write all the time (tests/several/load.py). In each
round all processes of the primary get SIGKILL at once, the standby is promoted up to two seconds
later, and what is left of the old primary becomes the new standby. At the end everything that was
acknowledged is compared with what is there.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.drivers.replicated import ReplicatedPostgres
from tests.drivers.server import Server
from tests.nightly.fuzz import say
from tests.several.checks import check_database
from tests.several.load import Client, Report

CLIENTS = 6
_PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Outcome:
    report: Report
    back_s: list[float] = field(default_factory=list)
    """For each round: from the promotion to the first acknowledged write."""
    all_back_s: list[float] = field(default_factory=list)
    """The same until every server has answered a write."""
    promotion_s: list[float] = field(default_factory=list)
    """How long the promotion itself took."""

    def line(self) -> str:
        report = self.report
        return (
            f"{len(self.back_s)} failovers, {report.acknowledged} acknowledged, "
            f"{len(report.problems)} problems, {report.unknown} had to be looked at; errors "
            f"{dict(report.answers)}; back after the promotion: first write "
            f"{max(self.back_s, default=0):.2f} s at most, all servers "
            f"{max(self.all_back_s, default=0):.2f} s at most; promotion "
            f"{max(self.promotion_s, default=0):.2f} s at most"
        )


@contextlib.contextmanager
def servers(url: str, folder: Path, count: int) -> Iterator[list[Server]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                Server(
                    folder / f"data{number}",
                    environment={"ZIBALDONE_STORE": url, "ZIBALDONE_EMBEDDER": "hashed"},
                )
            )
            for number in range(count)
        ]


def fail_over(
    rounds: int, seconds: float, folder: Path, *, server_count: int = 3, seed: int = 1
) -> Outcome:
    chance = random.Random(seed)
    outcome = Outcome(Report())
    with ReplicatedPostgres() as pair, servers(pair.url, folder, server_count) as running:
        urls = [server.url for server in running]
        clients = [Client(f"c{n}", urls, outcome.report, seed=seed) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for number in range(rounds):
            if number:
                pair.restore()
            time.sleep(seconds)
            pair.primary.kill()
            time.sleep(chance.uniform(0, 2))
            began_s = time.monotonic()
            pair.promote()
            promoted_s = time.monotonic()
            outcome.promotion_s.append(promoted_s - began_s)
            outcome.all_back_s.append(_until_all_write(running, number, promoted_s))
            time.sleep(seconds)
            outcome.back_s.append(outcome.report.first_after_s(promoted_s))
            say(f"{number + 1}: {outcome.line()}")
        for client in clients:
            client.stop()
        for client in clients:
            client.join(2 * _PATIENCE_SECONDS)
            assert not client.is_alive(), f"{client.name} hangs"
        for client in clients:
            client.check(running[0].client)
        check_database(outcome.report, pair.url, pair.admin_url())
    return outcome


def _until_all_write(running: list[Server], number: int, since_s: float) -> float:
    """The seconds until each of them has stored something."""
    for position, server in enumerate(running):
        body = {"path": f"back/{number}/{position}", "content": "text", "upsert": True}
        while server.client.post("/documents", json=body).status_code not in (200, 201):
            if time.monotonic() > since_s + _PATIENCE_SECONDS:
                raise RuntimeError(server.log())
            time.sleep(0.02)
    return time.monotonic() - since_s


def main() -> int:
    rounds = int(os.environ.get("FAILOVER_ROUNDS", "10"))
    seconds = float(os.environ.get("FAILOVER_SECONDS", "5"))
    with tempfile.TemporaryDirectory() as folder:
        outcome = fail_over(rounds, seconds, Path(folder))
    for problem in outcome.report.problems:
        say(problem)
    say(outcome.line())
    return 1 if outcome.report.problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Any process may die: `make storm`, or `python -m tests.several.storm`.

STORM_SECONDS   how long                    (300)
STORM_SEED      of all that is random but the timing (1)

Three servers behind nginx, a worker beside them, one PostgreSQL. Six clients write through nginx
all the time (tests/several/load.py). Every few seconds one process gets SIGKILL: a server, the
worker, or PostgreSQL with all its processes. It is started again up to a second later. At the end
everything that was acknowledged is compared with what is there, every chunk must have its vector,
and the store is checked thoroughly.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.drivers.postgres import PostgresServer
from tests.drivers.server import Server
from tests.nightly.fuzz import say
from tests.several.checks import check_database
from tests.several.deployment import Deployment, deployment
from tests.several.load import Client, Report

CLIENTS = 6
_PATIENCE_SECONDS = 60.0
_BETWEEN_SECONDS = (1.0, 3.0)
_DOWN_SECONDS_MAX = 1.0


@dataclass(slots=True)
class Outcome:
    report: Report
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        report = self.report
        return (
            f"{self.seconds:.0f} s, kills {dict(self.kills)}, {report.acknowledged} acknowledged, "
            f"{len(report.problems)} problems, {report.unknown} had to be looked at; errors "
            f"{dict(report.answers)}; longest time without an acknowledgement "
            f"{report.longest_gap_s():.1f} s"
        )


def storm(seconds: float, folder: Path, *, seed: int = 1) -> Outcome:
    chance = random.Random(seed)
    outcome = Outcome(Report())
    with deployment(folder) as running:
        clients = [
            Client(
                f"c{number}",
                [running.nginx.url],
                outcome.report,
                headers=running.headers,
                seed=seed,
                is_proxy=True,
                verify=running.nginx.trusted,
            )
            for number in range(CLIENTS)
        ]
        began_s = time.monotonic()
        for client in clients:
            client.start()
        while time.monotonic() - began_s < seconds:
            time.sleep(chance.uniform(*_BETWEEN_SECONDS))
            _kill_one(running, chance, outcome)
        time.sleep(_BETWEEN_SECONDS[0])
        for client in clients:
            client.stop()
        for client in clients:
            client.join(2 * _PATIENCE_SECONDS)
            assert not client.is_alive(), f"{client.name} hangs"
        outcome.seconds = time.monotonic() - began_s
        server = running.servers[0]
        server.client.headers.update(running.headers)
        for client in clients:
            client.check(server.client)
        check_database(outcome.report, running.url, running.admin_url)
    return outcome


def _kill_one(running: Deployment, chance: random.Random, outcome: Outcome) -> None:
    victims: dict[str, Server | PostgresServer] = {
        **{f"server {n + 1}": server for n, server in enumerate(running.servers)},
        "worker": running.worker,
        "PostgreSQL": running.postgres,
    }
    name = chance.choice(list(victims))
    victim = victims[name]
    outcome.kills[name] += 1
    victim.kill()
    time.sleep(chance.uniform(0, _DOWN_SECONDS_MAX))
    if isinstance(victim, Server):
        victim.start()
    else:
        victim.resume()


def main() -> int:
    seconds = float(os.environ.get("STORM_SECONDS", "300"))
    with tempfile.TemporaryDirectory() as folder:
        outcome = storm(seconds, Path(folder), seed=int(os.environ.get("STORM_SEED", "1")))
    for problem in outcome.report.problems:
        say(problem)
    say(outcome.line())
    return 1 if outcome.report.problems else 0


if __name__ == "__main__":
    sys.exit(main())

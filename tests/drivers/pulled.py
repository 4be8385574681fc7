"""A database of posts that a server pulls from, and an oracle beside it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.drivers.engines import backend_of
from tests.drivers.mcp import Mcp
from tests.drivers.rag import HASHED
from tests.drivers.server import Server
from tests.store.backends import Backend

EVERYWHERE = "common"
WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor")
TAGS = ("mysql", "json", "Python", "c++")
ROWS = 90
PATIENCE_SECONDS = 60.0
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Post:
    number: int

    @property
    def doc_id(self) -> str:
        return f"posts:{self.number}"

    @property
    def tags(self) -> frozenset[str]:
        return frozenset(tag for bit, tag in enumerate(TAGS) if self.number >> bit & 1)

    @property
    def score(self) -> int | None:
        return None if self.number % 11 == 0 else self.number % 17 - 4

    @property
    def post_type(self) -> int:
        return self.number % 3 + 1

    @property
    def created(self) -> datetime:
        return _FIRST + timedelta(hours=8 * self.number)

    @property
    def row(self) -> dict[str, Any]:
        tags = sorted(self.tags)
        styles = ("".join(f"<{tag}>" for tag in tags), ",".join(tags), json.dumps(tags))
        moment = self.created.strftime("%Y-%m-%d %H:%M:%S")
        word = WORDS[self.number % len(WORDS)]
        return {
            "Id": self.number,
            "PostTypeId": str(self.post_type) if self.number % 2 else self.post_type,
            "Title": f"About {word} {self.number}",
            "Body": f"<p>{EVERYWHERE} text on {word}, number n{self.number}.</p>",
            "Tags": styles[self.number % 3],
            "Score": self.score,
            "CreationDate": moment if self.number % 5 < 2 else moment.replace(" ", "T") + "Z",
            "UpdatedAt": moment,
            "Secret": f"secret-{self.number}",
        }


POSTS = tuple(Post(number) for number in range(1, ROWS + 1))


def ids(condition: Callable[[Post], bool]) -> set[str]:
    return {post.doc_id for post in POSTS if condition(post)}


def make_posts(file: Path) -> None:
    with connected(file) as raw:
        raw.execute(
            "CREATE TABLE posts (Id INTEGER PRIMARY KEY, PostTypeId, Title TEXT, Body TEXT,"
            " Tags TEXT, Score INTEGER, CreationDate TEXT, UpdatedAt TEXT, Secret TEXT)"
        )
        raw.executemany(
            "INSERT INTO posts VALUES (:Id, :PostTypeId, :Title, :Body, :Tags, :Score,"
            " :CreationDate, :UpdatedAt, :Secret)",
            [post.row for post in POSTS],
        )


@contextmanager
def connected(file: Path) -> Iterator[sqlite3.Connection]:
    raw = sqlite3.connect(file)
    try:
        yield raw
        raw.commit()
    finally:
        raw.close()


def posts_toml(file: Path, **more: Any) -> str:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    columns = '["Id", "Title", "Body", "Tags", "Score", "CreationDate"]'
    return (
        f'[sources.posts]\nurl = "sqlite:///{file}"\ntable = "posts"\nkey = "Id"\n'
        f'watermark = "UpdatedAt"\nrefetch = {columns}\n{lines}'
        '[sources.posts.document]\ntitle = "Title"\nbody = "Body"\ntags = "Tags"\n'
        'created = "CreationDate"\n'
        'metadata = ["PostTypeId", "Tags", "Score", "CreationDate"]\n'
    )


@dataclass(slots=True)
class Pulling:
    """A server with a configuration of its own."""

    server: Server
    backend: Backend
    config: Path

    @property
    def rag(self) -> Mcp:
        return Mcp(self.server.client, "/mcp-rag")

    def job(self, job_id: str) -> dict[str, Any]:
        answer = self.server.client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ended(self, job_id: str) -> dict[str, Any]:
        return self.job_until(job_id, lambda job: job["state"] not in ("queued", "running"))

    def job_until(self, job_id: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline_s = time.monotonic() + PATIENCE_SECONDS
        while not condition(job := self.job(job_id)):
            assert time.monotonic() < deadline_s, (job, self.server.log())
            time.sleep(0.05)
        return job

    def sync(self, *names: str) -> dict[str, Any]:
        """Sync and wait; the result of the first job."""
        accepted = self.rag.call("rag.admin.sync", source_names=list(names))
        for started in accepted["jobs"]:
            job = self.ended(started["job_id"])
            assert job["state"] == "done", job
        result: dict[str, Any] = self.ended(accepted["job_id"])["result"]
        return result


@contextmanager
def pulling(
    folder: Path, toml: str, environment: dict[str, str] | None = None
) -> Iterator[Pulling]:
    config = folder / "zibaldone.toml"
    config.write_text(toml)
    data = folder / "data"
    data.mkdir()
    given = {**HASHED, "ZIBALDONE_CONFIG": str(config), **(environment or {})}
    with Server(data, environment=given) as server:
        yield Pulling(server, backend_of(data), config)

"""A corpus of posts with known facets, a server that holds it, and an oracle beside it."""

from __future__ import annotations

import base64
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from tests.drivers.engines import backend_of
from tests.drivers.mcp import Mcp
from tests.drivers.server import Server
from zibaldone.embed.hashed import Hashed

POSTS = 120
HASHED = {"ZIBALDONE_EMBEDDER": "hashed"}
VOCABULARY = [
    *("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "indigo"),
    *("juniper", "kelp", "lantern", "marble", "nectar", "onyx", "pepper", "quartz", "raven"),
    *("saffron", "topaz", "umber", "velvet", "willow", "xenon", "yarrow", "zephyr"),
]
EVERYWHERE = "common"
"""A word that every post has, so that a search for it admits whatever the filter does."""

TAGS = ("mysql", "json", "Python", "c++")
SOURCES = {"kb": 1, "stack_posts": 21, "docs_disabled": 22}
MODES = ("fuse", "fts_then_vec", "convex")
IDS = {"chunk_id", "doc_id", "source_id", "source_name", "relevance", "updated_at"}
"""Keys of every hit."""
SEARCHES = ("rag.search_fts", "rag.search_vector", "rag.search_hybrid")
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_READY_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Post:
    number: int
    words: tuple[str, ...]
    tags: frozenset[str]
    score: int | None
    post_type: int
    created: datetime
    source: str

    @property
    def doc_id(self) -> str:
        return f"posts:{self.number:03}"

    @property
    def title(self) -> str:
        return f"Post about {self.words[0]}"

    @property
    def body(self) -> str:
        return " ".join((EVERYWHERE, *self.words))

    @property
    def text(self) -> str:
        """What a vector of its only passage is made of."""
        return f"{self.title}\n{self.body}"

    @property
    def is_enabled(self) -> bool:
        return self.source != "docs_disabled"

    @property
    def metadata(self) -> dict[str, Any]:
        """The same facets in every way that databases write them."""
        tags = sorted(self.tags)
        styles = ("".join(f"<{tag}>" for tag in tags), ",".join(tags), tags)
        moment = self.created.strftime("%Y-%m-%d %H:%M:%S")
        iso = self.created.strftime("%Y-%m-%dT%H:%M:%SZ")
        found: dict[str, Any] = {
            "Tags": styles[self.number % 3],
            "PostTypeId": str(self.post_type) if self.number % 2 else self.post_type,
            "CreationDate": moment if self.number % 5 < 2 else iso,
        }
        if self.score is not None:
            found["Score"] = str(self.score) if self.number % 2 == 0 else self.score
        return found


def _source_of(number: int) -> str:
    if 40 <= number < 80:
        return "stack_posts"
    return "docs_disabled" if 100 <= number < 110 else "kb"


def _posts() -> Iterator[Post]:
    chance = random.Random(4)
    for number in range(POSTS):
        yield Post(
            number,
            words=tuple(chance.sample(VOCABULARY, chance.randint(3, 9))),
            tags=frozenset(chance.sample(TAGS, chance.randint(0, 3))),
            score=None if number % 11 == 0 else chance.randint(-3, 12),
            post_type=chance.randint(1, 3),
            created=_FIRST_DAY + timedelta(hours=8 * number),
            source=_source_of(number),
        )


CORPUS: tuple[Post, ...] = tuple(_posts())
ENABLED: tuple[Post, ...] = tuple(post for post in CORPUS if post.is_enabled)


def ids(condition: Callable[[Post], bool]) -> set[str]:
    """The oracle: which posts may be found at all."""
    return {post.doc_id for post in ENABLED if condition(post)}


def holding(*words: str) -> set[str]:
    """Posts with one of these words."""
    return ids(lambda post: bool({*words} & {EVERYWHERE, *post.words}))


def docs_of(answer: dict[str, Any]) -> list[str]:
    return [hit["doc_id"] for hit in answer["results"]]


def chunks_of(answer: dict[str, Any]) -> list[str]:
    return [hit["chunk_id"] for hit in answer["results"]]


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "stats": {**answer["stats"], "ms": None}}


def embedding(text: str) -> dict[str, Any]:
    """A query_embedding as a client packs it."""
    return packed(Hashed().embed([text])[0])


def packed(values: Any) -> dict[str, Any]:
    raw = np.asarray(values, "<f4").tobytes()
    return {"dim": len(raw) // 4, "values_b64": base64.b64encode(raw).decode()}


def asking(tool: str, query: str = EVERYWHERE, **more: Any) -> dict[str, Any]:
    """The arguments of any of the three searches."""
    return {"query_text" if tool == "rag.search_vector" else "query": query, **more}


def wait_until_indexed(server: Server) -> None:
    deadline_s = time.monotonic() + _READY_SECONDS_MAX
    while time.monotonic() < deadline_s:
        if server.client.get("/health").json()["services"]["index"]["pending"] == 0:
            return
        time.sleep(0.02)
    raise AssertionError(f"vectors were not ready in time:\n{server.log()}")


@contextmanager
def posts_server(data: Path) -> Iterator[Server]:
    """A running server that holds CORPUS, its posts spread over three sources."""
    with Server(data, environment=HASHED) as server:
        for post in CORPUS:
            server.create(post.doc_id, post.body, title=post.title, metadata=post.metadata)
        wait_until_indexed(server)
        # The product cannot create sources yet: rows of them are put into the tables while no
        # server has them open.
        server.stop()
        _spread_over_sources(server)
        server.start()
        yield server


@contextmanager
def crowded_server(data: Path) -> Iterator[Server]:
    """More passages that hold one word equally often than any leg may bring."""
    with Server(data, environment=HASHED) as server:
        for number in range(60):
            parts = (_section(number, part) for part in range(10))
            server.create(f"crowd:{number}", "\n\n".join(parts))
        wait_until_indexed(server)
        yield server


def _section(number: int, part: int) -> str:
    """Long enough to be a passage of its own, with words that no other has."""
    words = " ".join(f"w{number}x{part}x{word}" for word in range(110))
    return f"# Part {part}\n\nneedle {words}"


def _spread_over_sources(server: Server) -> None:
    tables = backend_of(server.data)
    for name in ("stack_posts", "docs_disabled"):
        tables.execute(
            "INSERT INTO sources (source_id, namespace, name, kind, enabled, created_at_us)"
            " VALUES (?, 'default', ?, 'database', ?, 0)",
            (SOURCES[name], name, int(name == "stack_posts")),
        )
    for post in CORPUS:
        if post.source != "kb":
            tables.execute(
                "UPDATE documents SET source_id = ?, pk = ? WHERE document_id = ?",
                (SOURCES[post.source], json.dumps({"Id": post.number}), post.doc_id),
            )


def rag(server: Server) -> Mcp:
    return Mcp(server.client, "/mcp-rag")


def metric(server: Server, name: str, **labels: str) -> float:
    """One sample of /metrics, 0 when there is none yet."""
    total = 0.0
    for line in server.client.get("/metrics").text.splitlines():
        found = re.fullmatch(rf"{re.escape(name)}\{{(.*)\}} (\S+)", line)
        if found and {*labels.items()} <= {*re.findall(r'(\w+)="([^"]*)"', found[1])}:
            total += float(found[2])
    return total


@dataclass(slots=True)
class EmbeddingServer:
    """Speaks the OpenAI embeddings API; counts what it is asked for; can be made to hang."""

    texts: list[str] = field(default_factory=list)
    flowing: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ZIBALDONE_EMBEDDER": "remote",
            "ZIBALDONE_EMBEDDING_URL": f"http://127.0.0.1:{self.port}/v1",
            "ZIBALDONE_EMBEDDING_MODEL": "stub",
            "ZIBALDONE_EMBEDDING_DIMENSIONS": "64",
        }

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.texts += asked["input"]
        self.flowing.wait(timeout=20)
        vectors = Hashed().embed(asked["input"])
        return {
            "data": [{"index": n, "embedding": one.tolist()} for n, one in enumerate(vectors)],
        }


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    stub = EmbeddingServer()
    stub.flowing.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(stub.answer(asked)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        stub.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            stub.flowing.set()
            listening.shutdown()
            thread.join()

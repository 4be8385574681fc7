"""A loopback server that speaks the OpenAI embeddings API, well or as badly as a test wants."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import numpy as np

from zibaldone.embed.hashed import Hashed

DIMENSIONS = 8
MODEL = Hashed(DIMENSIONS)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause_seconds: float = 0.0
    """Between two bytes of the body, which then goes out one by one."""
    is_head_slow: bool = False
    """The same for the headers."""


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: dict[str, str]
    model: str
    texts: list[str]


Behaviour = Callable[[Asked], Answer | None]


def entries(texts: list[str], *, as_base64: bool = False, scale: float = 3.0) -> list[Any]:
    """What a model of unknown scale says of the texts."""
    rows = MODEL.embed(texts) * np.float32(scale)
    shown = [
        base64.b64encode(row.astype("<f4").tobytes()).decode() if as_base64 else row.tolist()
        for row in rows
    ]
    return [
        {"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(shown)
    ]


def well(data: Any) -> Answer:
    body = {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1}}
    return Answer(200, json.dumps(body).encode())


class EmbeddingServer:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.behaviour: Behaviour = lambda asked: None
        """What to answer; None: well."""
        self.hold = threading.Event()
        self.hold.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.path, headers, body["model"], body["input"])
                owner.asked.append(asked)
                owner.hold.wait(30)
                answer = owner.behaviour(asked) or well(entries(asked.texts))
                with contextlib.suppress(OSError):  # whoever asked may not have waited
                    self._send(answer)

            def _send(self, answer: Answer) -> None:
                headers = {**answer.headers, "content-length": str(len(answer.body))}
                lines = [f"{name}: {value}" for name, value in headers.items()]
                head = "\r\n".join((f"HTTP/1.1 {answer.status} OK", *lines, "", "")).encode()
                self._write(head, answer.pause_seconds if answer.is_head_slow else 0.0)
                self._write(answer.body, answer.pause_seconds)

            def _write(self, data: bytes, pause_seconds: float) -> None:
                step = 1 if pause_seconds else len(data) or 1
                for start in range(0, len(data), step):
                    self.wfile.write(data[start : start + step])
                    self.wfile.flush()
                    time.sleep(pause_seconds)

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def texts(self) -> list[list[str]]:
        return [asked.texts for asked in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

"""A loopback server with a /rerank endpoint, in one of the dialects, as good as a test wants."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

ServerDialect = Literal["tei", "cohere"]
Scores = Sequence[float]


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body.get("texts") or self.body.get("documents") or [])


@dataclass
class RerankServer:
    """Prefers texts that hold `favourite`. `answer`: what to send instead, status and body."""

    dialect: ServerDialect = "tei"
    favourite: str = "favourite"
    answer: Callable[[Asked], tuple[int, bytes] | None] = lambda asked: None
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.hold.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.path, headers, body)
                owner.asked.append(asked)
                owner.hold.wait(30)
                status, content = owner.answer(asked) or owner.well(asked)
                with contextlib.suppress(OSError):  # whoever asked may not have waited
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    for name, value in owner.headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def well(self, asked: Asked) -> tuple[int, bytes]:
        wanted = "texts" if self.dialect == "tei" else "documents"
        if wanted not in asked.body:
            return 422, b'{"error": "missing field"}'
        return 200, self.entries([0.9 if self.favourite in text else 0.1 for text in asked.texts])

    def entries(self, scores: Scores) -> bytes:
        """Best first, as the servers send them."""
        name = "score" if self.dialect == "tei" else "relevance_score"
        entries = [{"index": index, name: score} for index, score in enumerate(scores)]
        entries.sort(key=lambda entry: -entry[name])
        return json.dumps(entries if self.dialect == "tei" else {"results": entries}).encode()

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

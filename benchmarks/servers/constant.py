"""The floor of HTTP: an ASGI endpoint that does nothing but answer, on the same server.

`GET /<n>` gives n bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

Message = dict[str, Any]


def constant_of(size_bytes: int) -> list[Message]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size_bytes)]
    return [
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": b"x" * size_bytes},
    ]


class Constants:
    def __init__(self) -> None:
        self._ready: dict[str, list[Message]] = {}

    async def __call__(
        self, scope: Message, receive: object, send: Callable[[Message], Awaitable[None]]
    ) -> None:
        path: str = scope["path"]
        start, body = self._ready.get(path) or self._ready.setdefault(
            path, constant_of(int(path[1:]))
        )
        await send(start)
        await send(body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(
        Constants(),
        port=parser.parse_args().port,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=75,
    )

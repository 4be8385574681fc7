"""A real server in its own process, driven from outside as a client would."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Self

import httpx2 as httpx

from tests.drivers.answers import check_response
from tests.drivers.engines import store_environment

_START_SECONDS_MAX = 30
_RANDOM = SystemRandom()
COMMAND = (sys.executable, "-m", "zibaldone")


def free_port() -> int:
    """A port nobody listens on, and which no outgoing connection is given before it is used: those
    have ports from 32 768 on. Picked at random, so that runs side by side do not meet."""
    while True:
        port = _RANDOM.randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def clean_environment(
    extra: Mapping[str, str] | None = None, *, data: Path | None = None
) -> dict[str, str]:
    """The environment without settings of whoever runs the tests.

    And without an embedding model, unless a test asks for one: it takes a second to load, and what
    a search finds would depend on how far the index has come. The port is none that a server of
    theirs may be listening on. The store is that of the data folder.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZIBALDONE_")}
    ours = {"ZIBALDONE_EMBEDDER": "none", "ZIBALDONE_PORT": str(free_port())}
    store = {} if data is None else store_environment(data)
    return {**kept, **ours, **store, **(extra or {})}


class Server:
    """`zibaldone serve` on a free port; also usable after `kill()` by `start()` again."""

    def __init__(
        self,
        data: Path,
        *,
        command: Sequence[str] = (*COMMAND, "serve"),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data = data
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = data.parent / f"{data.name}-{self.port}.log"
        self.client = httpx.Client(
            base_url=self.url,
            timeout=30,
            trust_env=False,
            event_hooks={"response": [check_response]},
        )
        self._command = tuple(command)
        self._arguments = tuple(arguments)
        self._environment = clean_environment(environment, data=data)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._command,
                    *("--port", str(self.port)),
                    *("--data", str(self.data)),
                    *self._arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        self._wait_until_up()
        return self

    def _wait_until_up(self) -> None:
        deadline_s = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < deadline_s:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server stopped at once:\n{self.log()}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"the server did not start:\n{self.log()}")

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def kill(self) -> None:
        """As a power cut would: no warning, no clean-up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self._process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        self.stop()

    def create(self, path: str, content: str = "text", **more: Any) -> dict[str, Any]:
        answer = self.client.post("/documents", json={"path": path, "content": content, **more})
        assert answer.status_code == 201, answer.text
        result: dict[str, Any] = answer.json()
        return result


def run_cli(
    *arguments: str,
    data: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, in a process of its own."""
    options = [] if data is None else ["--data", str(data)]
    return subprocess.run(
        [*COMMAND, *options, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=clean_environment(environment, data=data),
        cwd=cwd,
        timeout=120,
        check=False,
    )


def parsed(result: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(result.stdout)

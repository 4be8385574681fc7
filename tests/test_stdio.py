"""MCP over standard input and output, spoken through bare pipes."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest

from tests.drivers.mcp import LEGACY, MODERN, modern_meta, text_of
from tests.drivers.server import COMMAND, clean_environment, run_cli
from tests.drivers.slow_host import WAIT_SECONDS_MAX, SlowHost
from zibaldone.protocol.versions import VERSIONS

MESSAGE_BYTES_MAX = 20_000


class Stdio:
    """`zibaldone stdio` as a client starts it. Whatever it prints must be a message."""

    def __init__(self, data: Path, *options: str, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "--data", str(data), "stdio", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(environment, data=data),
            # A shell ignores SIGINT in what it starts in the background: children inherit that.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.errors = b""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self.process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(b"")

    def _read_errors(self, stream: IO[bytes]) -> None:
        for line in stream:
            self.errors += line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(WAIT_SECONDS_MAX)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(
        self, method: str, params: dict[str, Any] | None = None, *, request_id: Any = None
    ) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if request_id is not None:
            message["id"] = request_id
        self.write(json.dumps(message).encode())

    def read(self) -> Any:
        line = self._lines.get(timeout=WAIT_SECONDS_MAX)
        assert line.endswith(b"\n"), (line, self.errors)
        message = json.loads(line)
        envelopes = message if isinstance(message, list) else [message]
        assert all(envelope["jsonrpc"] == "2.0" for envelope in envelopes)
        return message

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request and its answer, with nothing else running."""
        self.send(method, params, request_id=method)
        answer: dict[str, Any] = self.read()
        assert answer["id"] == method
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert result["isError"] is False, result
        return text_of(result)

    def end(self) -> int:
        """Close the input; the exit code, once everything that was printed has been read."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT_SECONDS_MAX)

    def is_drained(self) -> bool:
        return self._lines.get(timeout=WAIT_SECONDS_MAX) == b""


@pytest.fixture(scope="module")
def host() -> Iterator[SlowHost]:
    with SlowHost() as running:
        yield running


@pytest.fixture(scope="module")
def environment(host: SlowHost) -> dict[str, str]:
    return {
        "ZIBALDONE_INGEST_HOSTS": f"127.0.0.1:{host.port}",
        "ZIBALDONE_REQUEST_BODY_BYTES_MAX": str(MESSAGE_BYTES_MAX),
        "ZIBALDONE_LOG_LEVEL": "debug",
        "NO_PROXY": "*",
    }


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[Stdio]:
    """One process for tests that leave nothing running."""
    data = tmp_path_factory.mktemp("stdio") / "data"
    with Stdio(data, environment=environment) as running:
        yield running


@pytest.fixture
def stdio(shared: Stdio, host: SlowHost) -> Stdio:
    host.rearm()
    return shared


def ingest(host: SlowHost, path: str, token: str | None = None) -> dict[str, Any]:
    arguments = {"source": host.url, "path": path}
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return {"name": "ingest_document", "arguments": arguments, **meta}


class TestLegacy:
    @pytest.mark.parametrize("version", LEGACY)
    def test_a_session(self, stdio: Stdio, version: str) -> None:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x"}}
        result = stdio.ask("initialize", params)["result"]
        assert result["protocolVersion"] == version
        stdio.send("notifications/initialized")
        tools = stdio.ask("tools/list")["result"]["tools"]
        assert len(tools) == 10
        has_titles = version in ("2025-06-18", "2025-11-25")
        assert all(("title" in tool) is has_titles for tool in tools)
        path = f"stdio/{version}"
        assert stdio.call("upload_document", path=path, content="text")["revision"] == 1
        assert stdio.call("get_document", path=path)["content"] == "text"
        listed = stdio.ask("tools/call", {"name": "list_documents", "arguments": {}})["result"]
        assert ("structuredContent" in listed) is has_titles

    def test_batches_in_the_revision_that_has_them(self, stdio: Stdio) -> None:
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "nope"},
        ]
        stdio.ask("initialize", {"protocolVersion": "2025-03-26"})
        stdio.write(json.dumps(batch).encode())
        first, second = stdio.read()
        assert first == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert second["error"]["code"] == -32601
        stdio.ask("initialize", {"protocolVersion": "2025-11-25"})
        stdio.write(json.dumps(batch).encode())
        assert stdio.read()["error"]["code"] == -32600

    def test_errors(self, stdio: Stdio) -> None:
        assert stdio.ask("nope")["error"]["code"] == -32601
        assert stdio.ask("tools/call", {"name": "move_document"})["error"]["code"] == -32601


class TestModern:
    def test_a_request_says_its_version_itself(self, stdio: Stdio) -> None:
        result = stdio.ask("server/discover", {"_meta": modern_meta()})["result"]
        assert MODERN in result["supportedVersions"]
        assert result["resultType"] == "complete"
        listed = stdio.ask("tools/list", {"_meta": modern_meta()})["result"]
        assert len(listed["tools"]) == 10
        # And the legacy session beside it goes on as it was.
        assert "resultType" not in stdio.ask("tools/list")["result"]

    @pytest.mark.parametrize("requested", ["2030-01-01", 5, {"a": [[[1]]]}])
    def test_a_version_we_do_not_speak(self, stdio: Stdio, requested: Any) -> None:
        error = stdio.ask("tools/list", {"_meta": modern_meta(requested)})["error"]
        assert error["code"] == -32022
        shown = requested if isinstance(requested, str) else None
        assert error["data"] == {"supported": list(VERSIONS), "requested": shown}

    def test_removed_methods(self, stdio: Stdio) -> None:
        assert stdio.ask("ping", {"_meta": modern_meta()})["error"]["code"] == -32601


class TestLinesThatAreNoMessages:
    @pytest.mark.parametrize(
        ("line", "code"),
        [
            (b"{", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 2_000, -32700),
            (b"5", -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
            (b'"' + b"x" * (3 * MESSAGE_BYTES_MAX) + b'"', -32600),
        ],
    )
    def test_are_answered_and_survived(self, stdio: Stdio, line: bytes, code: int) -> None:
        stdio.write(line)
        assert stdio.read()["error"]["code"] == code
        assert stdio.ask("ping")["result"] == {}

    def test_empty_ones_are_passed_over(self, stdio: Stdio) -> None:
        stdio.write(b"")
        stdio.write(b" \t\r")
        assert stdio.ask("ping")["result"] == {}

    def test_notifications_of_any_kind_are_taken_silently(self, stdio: Stdio) -> None:
        for request_id in ("unknown", 17, None, [1], {"a": 1}, 1.5, True):
            stdio.send("notifications/cancelled", {"requestId": request_id})
        stdio.send("notifications/of/the/future")
        stdio.write(b'{"jsonrpc":"2.0","id":1,"result":{}}')
        assert stdio.ask("ping")["result"] == {}

    @pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028", "\u2029", "\x85"])
    def test_a_message_is_one_line_whatever_is_in_it(self, stdio: Stdio, ending: str) -> None:
        content = f"first{ending}last"
        arguments = {"path": "stdio/lines", "content": content, "upsert": True}
        stdio.call("upload_document", **arguments)
        stdio.send(
            "tools/call",
            {"name": "get_document", "arguments": {"path": "stdio/lines", "related": False}},
            request_id=1,
        )
        line = stdio._lines.get(timeout=WAIT_SECONDS_MAX).decode()
        assert len(line.splitlines()) == 1
        assert text_of(json.loads(line)["result"])["content"] == content


class TestSeveralAtOnce:
    def test_a_slow_call_holds_up_nobody(self, stdio: Stdio, host: SlowHost) -> None:
        stdio.send("tools/call", ingest(host, "stdio/slow"), request_id="slow")
        assert host.asked.wait(WAIT_SECONDS_MAX)
        for number in range(20):
            stdio.send("ping", request_id=number)
        assert sorted(stdio.read()["id"] for _ in range(20)) == list(range(20))
        host.release.set()
        assert stdio.read()["id"] == "slow"

    def test_many_requests_get_as_many_answers(self, stdio: Stdio) -> None:
        for number in range(300):
            stdio.send("tools/call", {"name": "list_documents", "arguments": {}}, request_id=number)
        assert {stdio.read()["id"] for _ in range(300)} == set(range(300))

    def test_one_id_used_twice_is_answered_twice(self, stdio: Stdio, host: SlowHost) -> None:
        stdio.send("tools/call", ingest(host, "stdio/twice"), request_id="same")
        assert host.asked.wait(WAIT_SECONDS_MAX)
        stdio.send("ping", request_id="same")
        assert stdio.read() == {"jsonrpc": "2.0", "id": "same", "result": {}}
        host.release.set()
        assert "content" in stdio.read()["result"]

    def test_progress_for_those_who_ask(self, stdio: Stdio, host: SlowHost) -> None:
        host.release.set()
        stdio.send("tools/call", ingest(host, "stdio/progress", "t"), request_id=1)
        steps = []
        while "id" not in (message := stdio.read()):
            assert message["method"] == "notifications/progress"
            assert message["params"]["progressToken"] == "t"
            steps.append(message["params"]["progress"])
        assert steps == [0, 1, 2]
        assert message["result"]["isError"] is False

    def test_a_cancelled_call_ends_without_an_answer(self, stdio: Stdio, host: SlowHost) -> None:
        stdio.send("tools/call", ingest(host, "stdio/cancelled"), request_id="slow")
        assert host.asked.wait(WAIT_SECONDS_MAX)
        stdio.send("notifications/cancelled", {"requestId": "slow", "reason": "enough"})
        assert host.abandoned.wait(WAIT_SECONDS_MAX)
        assert stdio.ask("ping")["result"] == {}
        assert "error" in stdio.call("get_document", path="stdio/cancelled")


class TestTheEnd:
    def test_of_input_is_a_clean_end(self, tmp_path: Path, environment: dict[str, str]) -> None:
        with Stdio(tmp_path / "data", environment=environment) as stdio:
            stdio.ask("initialize")
            assert stdio.end() == 0
            assert stdio.is_drained()
            assert b"Traceback" not in stdio.errors

    def test_what_runs_is_finished_first(
        self, tmp_path: Path, environment: dict[str, str], host: SlowHost
    ) -> None:
        host.rearm()
        with Stdio(tmp_path / "data", environment=environment) as stdio:
            stdio.send("tools/call", ingest(host, "stdio/last"), request_id=1)
            assert host.asked.wait(WAIT_SECONDS_MAX)
            assert stdio.process.stdin is not None
            stdio.process.stdin.close()
            host.release.set()
            assert text_of(stdio.read()["result"])["status"] == "created"
            assert stdio.process.wait(WAIT_SECONDS_MAX) == 0
            assert stdio.is_drained()

    def test_an_interrupt_needs_no_further_line(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        """The thread that reads cannot be interrupted, and was waited for."""
        with Stdio(tmp_path / "data", environment=environment) as stdio:
            stdio.ask("initialize")
            stdio.process.send_signal(signal.SIGINT)
            assert stdio.process.wait(WAIT_SECONDS_MAX) == 130
            assert stdio.is_drained()
            assert b"Traceback" not in stdio.errors

    def test_a_client_that_is_gone_is_not_written_to(
        self, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        """Each answer to it was a traceback, until nobody took those either."""
        process = subprocess.Popen(
            [*COMMAND, "--data", str(tmp_path / "data"), "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(environment, data=tmp_path / "data"),
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                for _ in range(100):
                    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
                process.stdin.flush()
            # Its input is open still.
            assert process.wait(WAIT_SECONDS_MAX) == 0
            assert b"Traceback" not in process.stderr.read()

    def test_a_profile_is_chosen_by_name(self, tmp_path: Path, environment: dict[str, str]) -> None:
        with Stdio(tmp_path / "data", "--profile", "readonly", environment=environment) as stdio:
            assert len(stdio.ask("tools/list")["result"]["tools"]) == 5
            error = stdio.ask("tools/call", {"name": "delete_document"})["error"]
            assert "not allowed" in error["message"]

    def test_one_that_is_not_there_is_said_on_stderr(self, tmp_path: Path) -> None:
        result = run_cli("stdio", "--profile", "nope", data=tmp_path / "data", stdin="")
        assert result.returncode == 2
        assert result.stdout == ""
        assert "nope" in result.stderr


def test_the_log_goes_to_stderr_as_json(stdio: Stdio) -> None:
    stdio.call("upload_document", path="stdio/logged", content="x", upsert=True)
    stdio.ask("ping")
    lines = [json.loads(line) for line in stdio.errors.splitlines()]
    audit = [json.loads(line["message"]) for line in lines if line["logger"] == "zibaldone.audit"]
    assert "stdio/logged" in [line["document"] for line in audit]

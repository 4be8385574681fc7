"""A loopback server that speaks OpenAI's and Anthropic's APIs, well or as badly as a test wants.

    with ModelServer() as models:
        models.script(Reply("Hello"), rate_limited(0), Reply(calls=(Call("read_file", "{}"),)))

`url` is the base URL of OpenAI clients (Chat Completions, Responses, models, files, vector stores),
`anthropic_url` that of Anthropic's (Messages). Requests to a model take the next of the script;
when it is over they get `default`. Every request is kept, byte for byte, in `requests`. Requests
are checked as the real APIs check them; usage includes what their prompt caches would serve.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import orjson

from tests.drivers.hosted_files import HostedFiles, Missing
from tests.drivers.model_checks import why_refused
from tests.drivers.model_formats import CREATED, Answered, Api, Call, Reply, event, stream, whole
from tests.drivers.model_prompts import (
    PrefixCache,
    anthropic_prompt,
    chat_prompt,
    responses_prompt,
    tokens_of,
)

__all__ = ["Call", "Cut", "Endless", "ModelServer", "Raw", "Recorded", "Reply", "Silent", "Status"]

_WAIT_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Status:
    """An error as the API that was asked writes it."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TooLong:
    """The context-too-long error of the API that was asked; `in_stream`: after the stream began."""

    in_stream: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is closed after so many events of the reply's stream."""

    after_events: int = 3
    reply: Reply = field(default_factory=lambda: Reply("The answer is cut off somewhere in here."))


@dataclass(frozen=True, slots=True)
class Endless:
    """The stream goes on until the client leaves; `data` is sent again and again if given."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing more is sent after so many events; with 0 not even the headers."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class Raw:
    """Any bytes at all; a stream by its content type unless told otherwise."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})


@dataclass(frozen=True, slots=True)
class InStream:
    """An error event after the stream began."""

    kind: str = "overloaded_error"
    message: str = "Overloaded"
    code: str = "server_error"


Step = Reply | Status | TooLong | Cut | Endless | Silent | Raw | InStream


def unauthorized() -> Status:
    return Status(401, "Incorrect API key provided.", "authentication_error", "invalid_api_key")


def rate_limited(retry_after: float | str = 0) -> Status:
    headers = {"retry-after": str(retry_after)}
    return Status(429, "Rate limit reached.", "rate_limit_error", "rate_limit_exceeded", headers)


def server_error() -> Status:
    return Status(500, "The server had an error.", "api_error", "server_error")


def overloaded() -> Status:
    return Status(529, "Overloaded", "overloaded_error")


@dataclass(slots=True)
class _Failing:
    method: str
    path: str
    step: Step
    times: int


class ModelServer:
    """Serves from threads of this process; other processes may be its clients."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        has_responses: bool = True,
        context_tokens: int | None = None,
        cache_tokens_min: int = 1_024,
        cache_step_tokens: int = 128,
    ) -> None:
        self.api_key = api_key
        """The only key that is accepted; None: any, and none."""
        self.has_responses = has_responses
        """False: a compatible endpoint that has Chat Completions only."""
        self.context_tokens = context_tokens
        """Prompt and room for the answer together must not be more; None: no bound."""
        self.default: Callable[[Recorded], Step] = lambda request: Reply("Understood.")
        """What requests get after the script is over."""
        self.requests: list[Recorded] = []
        self.hosted = HostedFiles()
        self.cache = PrefixCache(tokens_min=cache_tokens_min, step_tokens=cache_step_tokens)
        self.hold = threading.Event()
        """Cleared: requests to a model wait (after they are recorded) until it is set."""
        self.hold.set()
        self.asked = threading.Semaphore(0)
        """Released once for each request to a model: `wait_asked` takes it."""
        self.abandoned = threading.Event()
        """Set when a client left before its answer was complete."""
        self.closing = threading.Event()
        self._script: deque[Step] = deque()
        self._failing: list[_Failing] = []
        self._lock = threading.Lock()
        self._answers = iter(range(1, 1_000_000))
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self})
        )
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        self.anthropic_url = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.anthropic_url}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def script(self, *steps: Step) -> None:
        """What the next requests to a model get, one after the other."""
        with self._lock:
            self._script.extend(steps)

    @property
    def script_left(self) -> int:
        return len(self._script)

    def fail(self, path: str, step: Step, *, method: str = "", times: int = 1) -> None:
        """The next requests to a path that begins so get this instead; for files and stores."""
        with self._lock:
            self._failing.append(_Failing(method, path, step, times))

    @property
    def to_models(self) -> list[Recorded]:
        """The requests for an answer of a model; not those that ask whether an API is there."""
        return [
            request
            for request in self.requests
            if _api(request) is not None and not _is_probe(request)
        ]

    def wait_asked(self) -> None:
        if not self.asked.acquire(timeout=_WAIT_SECONDS_MAX):
            raise TimeoutError("no request came")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # What the handler asks

    def record(self, request: Recorded) -> None:
        with self._lock:
            self.requests.append(request)

    def failure(self, request: Recorded) -> Step | None:
        with self._lock:
            for failing in self._failing:
                matches = failing.method in ("", request.method)
                if failing.times and matches and request.path.startswith(failing.path):
                    failing.times -= 1
                    return failing.step
        return None

    def next_step(self, request: Recorded) -> Step:
        with self._lock:
            if self._script:
                return self._script.popleft()
        return self.default(request)

    def answered(self, api: Api, request: Recorded, reply: Reply) -> Answered:
        body = request.json
        blocks = _PROMPTS[api](body)
        account = request.headers.get("authorization") or request.headers.get("x-api-key")
        key = (account, body["model"], body.get("prompt_cache_key"))
        with self._lock:
            number = next(self._answers)
            count = self.cache.marked if api == "anthropic" else self.cache.automatic
            usage = count(key, blocks)
        has_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return Answered(
            reply,
            number,
            body["model"],
            replace(usage, output_tokens=reply.output_tokens),
            has_usage,
        )

    def is_too_long(self, api: Api, body: dict[str, Any]) -> bool:
        if self.context_tokens is None:
            return False
        size = tokens_of(sum(len(block.content) for block in _PROMPTS[api](body)))
        room = body.get("max_completion_tokens") or body.get("max_output_tokens")
        return size + (room or body.get("max_tokens") or 0) > self.context_tokens


_PROMPTS: dict[Api, Callable[[dict[str, Any]], list[Any]]] = {
    "chat": chat_prompt,
    "responses": responses_prompt,
    "anthropic": anthropic_prompt,
}
_APIS: dict[str, Api] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "anthropic",
}
_TOO_LONG: dict[Api, Status] = {
    "chat": Status(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9001 tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "responses": Status(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        code="context_length_exceeded",
    ),
    "anthropic": Status(400, "prompt is too long: 201234 tokens > 200000 maximum"),
}


def _api(request: Recorded) -> Api | None:
    return _APIS.get(request.path.partition("?")[0]) if request.method == "POST" else None


def _is_probe(request: Recorded) -> bool:
    """Whether it has no content: its answer only tells whether there is such an API."""
    return request.body in (b"", b"{}")


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.command, self.path, headers, body)
        self.owner.record(request)
        try:
            self._answer(request)
        except OSError:
            self.owner.abandoned.set()
            self.close_connection = True

    def _answer(self, request: Recorded) -> None:
        api = _api(request)
        if not _has_key(self.owner.api_key, request):
            self._send_step(api or "chat", request, unauthorized())
        elif (failure := self.owner.failure(request)) is not None:
            self._send_step(api or "chat", request, failure)
        elif api == "responses" and not self.owner.has_responses:
            self._send_json(404, {"error": {"message": "Not found", "code": 404}})
        elif api is not None:
            self._answer_model(api, request)
        else:
            self._answer_other(request)

    def _answer_model(self, api: Api, request: Recorded) -> None:
        if not _is_probe(request):
            self.owner.asked.release()
            self.owner.hold.wait(_WAIT_SECONDS_MAX)
        try:
            fault = why_refused(api, request.json, request.headers)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            fault = f"Malformed request: {error!r}"
        if fault is not None:
            self._send_step(api, request, Status(400, fault))
        elif self.owner.is_too_long(api, request.json):
            self._send_step(api, request, TooLong())
        else:
            self._send_step(api, request, self.owner.next_step(request))

    def _answer_other(self, request: Recorded) -> None:
        if request.path.partition("?")[0] == "/v1/models":
            model = {"id": "model", "object": "model", "created": CREATED, "owned_by": "tests"}
            self._send_json(200, {"object": "list", "data": [model]})
            return
        kind = request.headers.get("content-type", "")
        try:
            answer = self.owner.hosted.answer(request.method, request.path, kind, request.body)
        except Missing as missing:
            self._send_json(404, _openai_error(Status(404, f"No such object: {missing}")))
            return
        if answer is None:
            self._send_json(404, _openai_error(Status(404, f"Unknown URL: {request.path}")))
        elif isinstance(answer, bytes):
            self._send(200, answer, {"content-type": "application/octet-stream"})
        else:
            self._send_json(200, answer)

    def _send_step(self, api: Api, request: Recorded, step: Step) -> None:  # noqa: C901
        match step:
            case Reply():
                self._send_reply(api, request, step)
            case Status():
                write = _anthropic_error if api == "anthropic" else _openai_error
                self._send_json(step.status, write(step), step.headers)
            case TooLong(in_stream=False):
                self._send_step(api, request, _TOO_LONG[api])
            case TooLong():
                status = _TOO_LONG[api]
                error = InStream(status.kind, status.message, status.code or "")
                self._send_step(api, request, error)
            case InStream():
                self._start_stream()
                for data in (*self._first(api, request, 2), _stream_error(api, step)):
                    self._send_chunk(data)
                self._end_stream()
            case Raw():
                self._send(step.status, step.body, step.headers)
            case Cut():
                self._start_stream()
                for data in self._first(api, request, step.after_events, step.reply):
                    self._send_chunk(data)
                self.close_connection = True
            case Silent():
                if step.after_events:
                    self._start_stream()
                    for data in self._first(api, request, step.after_events):
                        self._send_chunk(data)
                self._wait_until_left()
            case Endless():
                self._start_stream()
                self._send_for_ever(api, request, step.data)

    def _first(
        self, api: Api, request: Recorded, count: int, reply: Reply | None = None
    ) -> Iterator[bytes]:
        answered = self.owner.answered(api, request, reply or Reply("words " * 50))
        for _, data in zip(range(count), stream(api, answered), strict=False):
            yield data

    def _send_for_ever(self, api: Api, request: Recorded, data: bytes) -> None:
        events = list(self._first(api, request, 8))
        for first in events[:-1]:
            self._send_chunk(first)
        while not self.owner.closing.is_set():
            self._send_chunk(data or events[-1])

    def _wait_until_left(self) -> None:
        self.connection.settimeout(0.02)
        while not self.owner.closing.is_set():
            with contextlib.suppress(TimeoutError):
                if self.connection.recv(1) == b"":
                    break
        self.owner.abandoned.set()
        self.close_connection = True

    def _send_reply(self, api: Api, request: Recorded, reply: Reply) -> None:
        answered = self.owner.answered(api, request, reply)
        if not request.json.get("stream"):
            self._send_json(200, whole(api, answered))
            return
        self._start_stream()
        for data in stream(api, answered):
            self._send_chunk(data)
        self._end_stream()

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        kind = {"content-type": "application/json"}
        self._send(status, orjson.dumps(body), {**kind, **(headers or {})})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _has_key(key: str | None, request: Recorded) -> bool:
    """Anthropic takes an API key as `x-api-key` and refuses it as a bearer token."""
    if _api(request) == "anthropic":
        return key is None or request.headers.get("x-api-key") == key
    return key is None or request.headers.get("authorization") == f"Bearer {key}"


def _openai_error(status: Status) -> dict[str, Any]:
    error = {"message": status.message, "type": status.kind, "param": None, "code": status.code}
    return {"error": error}


def _anthropic_error(status: Status) -> dict[str, Any]:
    return {"type": "error", "error": {"type": status.kind, "message": status.message}}


def _stream_error(api: Api, error: InStream) -> bytes:
    if api == "anthropic":
        return event(_anthropic_error(Status(200, error.message, error.kind)), "error")
    if api == "chat":
        return event(_openai_error(Status(200, error.message, error.kind, error.code)))
    failed = {
        "id": "resp_failed",
        "object": "response",
        "created_at": CREATED,
        "status": "failed",
        "error": {"code": error.code, "message": error.message},
        "model": "model",
        "output": [],
    }
    data = {"type": "response.failed", "sequence_number": 9, "response": failed}
    return event(data, "response.failed")

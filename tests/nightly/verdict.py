"""What is wrong with an answer, or None.

Allowed is every answer below 500 that is whole, readable by its own content type and, where it
refuses, carries a code of `errors.py` or of JSON-RPC. Of the others:

- 501 with NOT_IMPLEMENTED or NOT_CONFIGURED: documented, the same for every such call;
- 503 with VECTORS_LOADING: documented, passes by itself.

- 504 for a file whose conversion was ended because the machine gave it too little CPU time: the
  file alone would be a 422, and next to other load the clock comes first. Counted apart.

500 (a fault of ours), any other 504 (no call of a fuzzer is worth 30 s), 507 and the other 503s
(there is room on the disk, and the model is there) are findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.drivers.mcp import JSON_TYPE, SSE_TYPE, frames_of
from zibaldone import errors
from zibaldone.protocol import admission, jsonrpc, methods, resources
from zibaldone.web import app as web_app

ALLOWED = {501: {"NOT_IMPLEMENTED", "NOT_CONFIGURED"}, 503: {"VECTORS_LOADING"}}
OUT_OF_TIME = re.compile(rb"The (file|source) was not (read and )?converted within")
BODY_BYTES_MAX = 40_000_000
MESSAGE_CHARS_MAX = 2_000
_ERROR_KEYS = {"code", "message", "details", "request_id"}


def _error_codes(kind: type[errors.ZibaldoneError]) -> Iterator[str]:
    yield kind.code
    for narrower in kind.__subclasses__():
        yield from _error_codes(narrower)


def _rpc_codes() -> Iterator[int]:
    for module in (admission, jsonrpc, methods, resources):
        for value in vars(module).values():
            if isinstance(value, int) and -32768 <= value <= -32000:
                yield value


assert web_app  # imported for the errors that it and what it uses declare
CODES = frozenset(_error_codes(errors.ZibaldoneError)) - {"INTERNAL", "CONFIGURATION"}
RPC_CODES = frozenset(_rpc_codes()) - {-32603}


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    is_complete: bool = False
    problem: str | None = None
    """What was wrong with the way it was sent."""

    def header(self, name: bytes) -> bytes:
        return dict(self.headers).get(name, b"")


def is_out_of_time(case: Mapping[str, Any], answer: Answer) -> bool:
    """Whether a file was not converted for want of CPU time, and the answer says so."""
    return case["kind"] == "file" and OUT_OF_TIME.search(answer.body) is not None


def problem_of(answer: Answer, method: str) -> str | None:
    if answer.problem is not None:
        return answer.problem
    if not answer.is_complete:
        return "the answer is not complete"
    names = [name for name, _ in answer.headers]
    if len(set(names)) != len(names):
        return "a header is sent twice"
    if len(answer.body) > BODY_BYTES_MAX:
        return "the answer is over 40 MB"
    if answer.status in (202, 204) or method == "HEAD":
        return "a body where there is none" if answer.body else _plain(answer.status)
    length = answer.header(b"content-length")
    if length and int(length) != len(answer.body):
        return "the length is not that of the body"
    return _content(answer)


def is_server_error(problem: str) -> bool:
    """Whether the problem is a status of 500 or more that is not allowed."""
    return re.match(r"(status )?5\d\d\b", problem) is not None


def _plain(status: int) -> str | None:
    """Where there is no body to look for a code in."""
    return None if status < 500 or status in ALLOWED else f"status {status}"


def _content(answer: Answer) -> str | None:
    kind = answer.header(b"content-type").decode("latin-1")
    if kind.startswith("text/plain") and answer.status == 200:
        return None  # /metrics
    try:
        if kind == SSE_TYPE:
            values = frames_of(answer.body)
        elif kind == JSON_TYPE:
            values = [orjson.loads(answer.body)]
        else:
            return f"content type {kind!r} with status {answer.status}"
    except (ValueError, AssertionError):
        return "the body cannot be read as what it says it is"
    for value in values:
        for envelope in value if isinstance(value, list) else [value]:
            problem = _envelope(answer.status, envelope)
            if problem is not None:
                return problem
    return None


def _envelope(status: int, value: Any) -> str | None:
    if not isinstance(value, dict):
        return "the answer is not an object"
    if "jsonrpc" not in value:
        return None if status < 400 else _refusal(status, value)
    if "method" in value:
        return None
    if "error" in value:
        return _rpc_error(status, value["error"])
    if status >= 400:
        return f"status {status} with a result"
    result = value.get("result")
    if isinstance(result, dict) and result.get("isError"):
        failure = orjson.loads(result["content"][0]["text"])
        return _code(failure["status"], failure["code"], failure["message"])
    return None


def _refusal(status: int, value: dict[str, Any]) -> str | None:
    if status == 503 and value.get("status") == "degraded":
        return "/health says degraded"
    if set(value) != _ERROR_KEYS:
        return f"status {status} without code, message, details and request_id"
    return _code(status, value["code"], value["message"])


def _code(status: int, code: Any, message: Any) -> str | None:
    if status >= 500 and code not in ALLOWED.get(status, ()):
        return f"{status} {code}: {message}"
    if code not in CODES:
        return f"{status} with the unknown code {code!r}"
    if not isinstance(message, str) or len(message) > MESSAGE_CHARS_MAX:
        return f"{status} {code} with a message over {MESSAGE_CHARS_MAX} characters"
    return None


def _rpc_error(status: int, error: Any) -> str | None:
    if status >= 500:
        return f"status {status} with a JSON-RPC error"
    if not isinstance(error, dict) or error.get("code") not in RPC_CODES:
        return f"JSON-RPC error {error if len(str(error)) < 200 else str(error)[:200]}"
    message = error.get("message")
    if not isinstance(message, str) or len(message) > MESSAGE_CHARS_MAX:
        return f"JSON-RPC error {error['code']} with a message over {MESSAGE_CHARS_MAX} characters"
    return None

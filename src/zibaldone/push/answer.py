"""What a server answered to one JSON-RPC request: found in a body, and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from zibaldone.errors import RemoteFailed
from zibaldone.limits import ECHO_CHARS_MAX

NO_MEMORY = "Is it the address of a memory? Zibaldone's ends in /mcp-memory, Graphiti's in /mcp."


class IncompleteAnswer(Exception):
    """The body holds no answer to the request; it was cut off, or somebody else wrote it."""


def find_answer(content_type: str, body: bytes, request_id: int) -> dict[str, Any]:
    """The envelope with the result or the error of this request.

    In an event stream it is the first event that answers; notifications may come before it. A
    body of another type is JSON as a whole.
    """
    text = body.decode("utf-8", "replace")
    is_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"
    candidates = list(_events(text)) if is_stream else []
    for candidate in candidates or [text]:
        try:
            message = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        if isinstance(message, dict) and _is_answer(message, request_id):
            return message
    raise IncompleteAnswer


def _is_answer(message: Mapping[str, Any], request_id: int) -> bool:
    if "result" in message:
        return message.get("id") == request_id
    # A server that could not read the request does not know its id.
    return "error" in message and message.get("id") in (request_id, None)


def _events(text: str) -> Iterator[str]:
    """The data of each server-sent event; several lines of one event are joined."""
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    if data:
        yield "\n".join(data)  # the blank line after the last event is often missing


def result_of(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """The result; RemoteFailed if it is a JSON-RPC error."""
    if "error" in envelope:
        error = envelope["error"]
        message = error.get("message") if isinstance(error, dict) else error
        code = error.get("code") if isinstance(error, dict) else None
        hint = f" {NO_MEMORY}" if "unknown tool" in str(message).lower() else ""
        raise RemoteFailed(
            f"The server refused the request: {_short(message)}.{hint}", rpc_code=code
        )
    result = envelope["result"]
    return result if isinstance(result, dict) else {}


def tool_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool returned; RemoteFailed if it failed.

    A tool fails by `isError`, or by `{"error": …}` in an answer that claims success.
    """
    answer = _payload(result)
    if result.get("isError"):
        raise RemoteFailed(f"The tool failed: {_error_text(answer)}", code=_error_code(answer))
    if isinstance(answer.get("error"), str | dict) and answer["error"]:
        raise RemoteFailed(f"The tool failed: {_error_text(answer)}", code=_error_code(answer))
    return answer


def _payload(result: Mapping[str, Any]) -> dict[str, Any]:
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        # Answers of which there are several types are wrapped.
        inner = structured.get("result")
        return inner if len(structured) == 1 and isinstance(inner, dict) else structured
    texts = [
        part.get("text", "")
        for part in result.get("content") or ()
        if isinstance(part, dict) and part.get("type") == "text"
    ]
    try:
        loaded = orjson.loads(texts[0]) if texts else {}
    except orjson.JSONDecodeError:
        loaded = None
    return loaded if isinstance(loaded, dict) else {"message": "\n".join(map(str, texts))}


def _error_text(answer: Mapping[str, Any]) -> str:
    error = answer.get("error", answer)
    if isinstance(error, dict):
        error = error.get("message", error)
    return _short(error)


def _error_code(answer: Mapping[str, Any]) -> str | None:
    error = answer.get("error", answer)
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= ECHO_CHARS_MAX else text[:ECHO_CHARS_MAX] + "…"

"""JSON of a provider: read without trust, and written so that equal values give equal bytes."""

from __future__ import annotations

import re
from typing import Any

import orjson

from zibaldone.limits import PROVIDER_CALLS_MAX, PROVIDER_NAME_CHARS_MAX
from zibaldone.model.consult import Message, ModelReply, Stop, ToolCall, Usage

_TOKENS_MAX = 2**53
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_CALL_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{PROVIDER_NAME_CHARS_MAX}}}")
_SURROGATES = re.compile("[\ud800-\udfff]")


class Malformed(Exception):
    """An answer that is not what the API promises."""


def mapping(value: Any) -> dict[str, Any]:
    """An object; empty if there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("an object was expected")
    return value


def sequence(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed("a list was expected")
    return value


def string(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed("text was expected")
    return value


def integer(value: Any) -> int:
    if value is None:
        return 0
    if type(value) is not int:
        raise Malformed("a number was expected")
    return value


def count(value: Any) -> int:
    """A number of tokens. It is only reported, so a wrong one does not spoil the answer."""
    return value if type(value) is int and 0 <= value < _TOKENS_MAX else 0


def clean(text: str) -> str:
    """Text that can be stored and encoded: halves of characters are joined or replaced."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Text:
    """Text that comes in pieces. A character may be cut in two: its first half is held back."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """What can be shown now."""
        piece = self._half + piece
        self._half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        piece = clean(piece)
        if piece:
            self._pieces.append(piece)
        return piece

    def whole(self) -> str:
        return "".join((*self._pieces, clean(self._half)))


def tool_call(call_id: str, name: str, arguments: str, index: int) -> ToolCall:
    """A call whose id and name every provider takes back, whatever the model wrote."""
    call_id = call_id if _CALL_ID.fullmatch(call_id) else f"call_{index}"
    name = _NOT_IN_NAMES.sub("_", name[:PROVIDER_NAME_CHARS_MAX]) or "unnamed"
    return ToolCall(call_id, name, clean(arguments) or "{}")


def with_own_ids(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """At most so many calls as are answered, no two with the same id."""
    seen: set[str] = set()
    own: list[ToolCall] = []
    for index, call in enumerate(calls[:PROVIDER_CALLS_MAX]):
        call_id = call.call_id
        while call_id in seen:
            call_id = f"{call.call_id[: PROVIDER_NAME_CHARS_MAX - 8]}_{index}_{len(seen)}"
        seen.add(call_id)
        own.append(ToolCall(call_id, call.name, call.arguments))
    return tuple(own)


def reply(
    text: str, calls: list[ToolCall], stop: Stop, *, usage: Usage, model: str, opaque: Any = None
) -> ModelReply:
    is_cut = stop in ("length", "refused")
    kept = () if is_cut else with_own_ids(calls)
    if not is_cut:
        stop = "tools" if kept else "end"
    message = Message("assistant", text, kept, opaque=None if is_cut else opaque)
    return ModelReply(message, usage, stop, clean(model)[:200])


def arguments_object(arguments: str) -> dict[str, Any]:
    """The arguments of a call as an object; malformed ones are shown to the model as they were."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"malformed_arguments": arguments}


def arguments_text(arguments: str) -> str:
    """JSON of an object: servers that parse the arguments of earlier calls would fail otherwise."""
    value = arguments_object(arguments)
    is_malformed = list(value) == ["malformed_arguments"]
    return orjson.dumps(value).decode() if is_malformed else arguments


def write_json(body: dict[str, Any]) -> bytes:
    """The bytes of a body, in the order of its keys."""
    try:
        return orjson.dumps(body)
    except TypeError:  # half a character somewhere: a file's name need not be UTF-8
        return orjson.dumps(_cleaned(body))


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(key): _cleaned(part) for key, part in value.items()}
        case list() | tuple():
            return [_cleaned(part) for part in value]
    return value


def is_strict(schema: Any) -> bool:
    """Whether every object of a schema lists all it has: only then OpenAI can guarantee it."""
    match schema:
        case list():
            return all(map(is_strict, schema))
        case dict():
            properties = schema.get("properties")
            if isinstance(properties, dict) or schema.get("type") == "object":
                named = set(properties) if isinstance(properties, dict) else set()
                required = schema.get("required", [])
                if schema.get("additionalProperties") is not False:
                    return False
                if not isinstance(required, list) or named != set(map(str, required)):
                    return False
            return all(map(is_strict, schema.values()))
    return True

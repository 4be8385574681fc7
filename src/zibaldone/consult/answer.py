"""The answer of a turn: what was said, what was sent and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired

import orjson
from typing_extensions import TypedDict

from zibaldone.limits import CONSULT_ANSWER_BYTES_MAX, CONSULT_PATHS_SHOWN_MAX
from zibaldone.model.consult import Place, PlacedFile, Session, Usage


class FileList(TypedDict):
    count: int
    paths: list[str]
    """The first of them."""


class LeftOutFile(TypedDict):
    path: str
    why: str


class LeftOutList(TypedDict):
    count: int
    files: list[LeftOutFile]


class TokensUsed(TypedDict):
    input: int
    """As the provider counted, cached ones included; of all requests of the turn."""
    cached: int
    output: int
    cached_share: float
    saved: int
    """What this turn would have sent more, had it sent all its files again."""
    saved_total: int
    session: int
    """Of the conversation as it is now: as much as the context window holds of it."""


class StoredAnswer(TypedDict):
    path: str
    revision: NotRequired[int]
    error: NotRequired[str]
    """Why the answer could not be stored."""


class ChatAnswer(TypedDict):
    status: Literal["done"]
    answer: str
    structured: NotRequired[Any]
    """The answer as JSON, if a schema was given and it fits."""
    assistant: str
    session_id: str
    turn: int
    model: str
    stop: str
    """Why the answer ends: end, length (output_tokens was too little), refused, or steps."""
    sent: FileList
    """Files that were sent in this turn: new or changed ones."""
    unchanged: FileList
    """Files that the assistant has from turns before."""
    store: FileList
    """Files that the assistant could search and read in this turn."""
    attachments: FileList
    left_out: LeftOutList
    deleted: FileList
    rewritten: str
    """Why all files were sent again in a new order; empty: they were not."""
    tokens: TokensUsed
    cost: float
    cost_total: float
    redacted: int
    """Secrets that were taken out of what was sent."""
    tool_calls: int
    notes: list[str]
    stored: NotRequired[StoredAnswer]


class Report(TypedDict):
    """What a turn knows before its answer: recorded with it, so that nothing is lost by a crash."""

    sent: FileList
    unchanged: FileList
    store: FileList
    attachments: FileList
    left_out: LeftOutList
    deleted: FileList
    rewritten: str
    saved: int
    redacted: int
    notes: list[str]


def file_list(paths: Sequence[str]) -> FileList:
    return {"count": len(paths), "paths": list(paths[:CONSULT_PATHS_SHOWN_MAX])}


def placed_lists(
    placed: Iterable[PlacedFile],
) -> tuple[dict[Place, FileList], LeftOutList]:
    by_place: dict[Place, list[str]] = {}
    left_out: list[LeftOutFile] = []
    for file in placed:
        if file.place == "left_out":
            left_out.append({"path": file.path, "why": file.why})
        else:
            by_place.setdefault(file.place, []).append(file.path)
    places: tuple[Place, ...] = ("inline", "unchanged", "store", "attachment")
    lists = {place: file_list(by_place.get(place, [])) for place in places}
    return lists, {"count": len(left_out), "files": left_out[:CONSULT_PATHS_SHOWN_MAX]}


def without_paths(report: Report) -> Report:
    """The numbers of a report, for turns that are past."""
    return {
        **report,
        "sent": {**report["sent"], "paths": []},
        "unchanged": {**report["unchanged"], "paths": []},
        "store": {**report["store"], "paths": []},
        "attachments": {**report["attachments"], "paths": []},
        "deleted": {**report["deleted"], "paths": []},
        "left_out": {**report["left_out"], "files": []},
        "notes": [],
    }


def chat_answer(
    session: Session,
    turn: dict[str, Any],
    text: str,
    schema: dict[str, Any] | None,
) -> ChatAnswer:
    """From what is recorded: the same after a crash as before it."""
    report: Report = turn["report"]
    usage = Usage(*turn["usage"])
    notes = list(report["notes"])
    shown = _cut(text)
    if len(shown) < len(text):
        notes.append(f"The answer has {len(text)} characters; only the first are shown.")
    answer: ChatAnswer = {
        "status": "done",
        "answer": shown,
        "assistant": session.key.assistant,
        "session_id": session.key.session_id,
        "turn": turn["number"],
        "model": turn["model"],
        "stop": turn["stop"],
        "sent": report["sent"],
        "unchanged": report["unchanged"],
        "store": report["store"],
        "attachments": report["attachments"],
        "left_out": report["left_out"],
        "deleted": report["deleted"],
        "rewritten": report["rewritten"],
        "tokens": {
            "input": usage.input_tokens,
            "cached": usage.cached_tokens,
            "output": usage.output_tokens,
            "cached_share": round(usage.cached_tokens / max(usage.input_tokens, 1), 4),
            "saved": report["saved"],
            "saved_total": session.saved_tokens,
            "session": session.tokens,
        },
        "cost": turn["cost"],
        "cost_total": session.cost,
        "redacted": report["redacted"],
        "tool_calls": turn["calls"],
        "notes": notes,
    }
    if schema is not None:
        _add_structured(answer, text, schema)
    return answer


def _add_structured(answer: ChatAnswer, text: str, schema: dict[str, Any]) -> None:
    try:
        value = orjson.loads(_without_fence(text))
    except orjson.JSONDecodeError:
        answer["notes"].append("The answer is not the JSON that structured_output_schema asks for.")
        return
    problem = why_unfit(value, schema)
    if problem:
        answer["notes"].append(f"The answer does not fit structured_output_schema: {problem}.")
    elif len(orjson.dumps(value)) <= CONSULT_ANSWER_BYTES_MAX // 4:
        answer["structured"] = value
    else:
        answer["notes"].append("The structured answer is long: read it from `answer`.")


def _without_fence(text: str) -> str:
    """Models like to write JSON into a block of Markdown."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped[stripped.index("\n") + 1 : -3].strip()
    return stripped


def _cut(text: str) -> str:
    written = text.encode(errors="replace")
    if len(written) <= CONSULT_ANSWER_BYTES_MAX // 2:
        return written.decode()
    return written[: CONSULT_ANSWER_BYTES_MAX // 2].decode(errors="ignore")


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_DEPTH_MAX = 32


def why_unfit(value: Any, schema: Any, place: str = "the answer", depth: int = 0) -> str:
    """Why a value does not fit a schema; empty if it does.

    What structured answers use is checked: type, enum, const, properties, required,
    additionalProperties, items. Other words are not.
    """
    if not isinstance(schema, dict) or depth > _DEPTH_MAX:
        return ""
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if names and not any(_has_type(value, name) for name in names):
        return f"{place} must be of the type {' or '.join(map(str, names))}"
    if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
        return f"{place} is none of the values of its enum"
    if "const" in schema and value != schema["const"]:
        return f"{place} is not the value of its const"
    if isinstance(value, dict):
        return _why_unfit_object(value, schema, place, depth)
    if isinstance(value, list):
        for number, item in enumerate(value):
            problem = why_unfit(item, schema.get("items"), f"{place}[{number}]", depth + 1)
            if problem:
                return problem
    return ""


def _why_unfit_object(value: dict[str, Any], schema: dict[str, Any], place: str, depth: int) -> str:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if name not in value:
            return f"{place} lacks {str(name)[:64]!r}"
    for name, item in value.items():
        if name in properties:
            problem = why_unfit(item, properties[name], f"{place}.{name[:64]}", depth + 1)
            if problem:
                return problem
        elif schema.get("additionalProperties") is False:
            return f"{place} may not have {name[:64]!r}"
    return ""


def _has_type(value: Any, name: object) -> bool:
    types = _TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, types)

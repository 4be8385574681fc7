"""Why a real provider would refuse a request: messages that do not fit each other, and the like."""

from __future__ import annotations

from typing import Any

from tests.drivers.model_formats import Api
from tests.drivers.model_prompts import MARKS_MAX, anthropic_prompt


def why_refused(api: Api, body: dict[str, Any], headers: dict[str, str]) -> str | None:
    """Why the real API would refuse the request; None if it would not."""
    if not isinstance(body.get("model"), str):
        return "you must provide a model parameter"
    check = {"chat": _chat_faults, "responses": _responses_faults, "anthropic": _anthropic_faults}
    return check[api](body, headers)


def _chat_faults(body: dict[str, Any], headers: dict[str, str]) -> str | None:
    del headers
    waiting: set[str] = set()
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                return "messages with role 'tool' must follow a message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"tool messages are missing for {sorted(waiting)}"
        if role not in ("system", "developer", "user", "assistant"):
            return f"unknown role {role}"
        waiting = {call["id"] for call in message.get("tool_calls", ())}
        if message.get("content") is None and not waiting:
            return "a message has no content"
    return f"tool messages are missing for {sorted(waiting)}" if waiting else None


def _responses_faults(body: dict[str, Any], headers: dict[str, str]) -> str | None:
    del headers
    if isinstance(body["input"], str):
        return None
    called: set[str] = set()
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            called.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in called:
                return f"No tool call found for function call output with call_id {item['call_id']}"
            called.remove(item["call_id"])
        elif kind == "message" and not isinstance(item["content"], str | list):
            return "a message has no content"
    return f"No tool output found for function call {min(called)}." if called else None


def _anthropic_faults(body: dict[str, Any], headers: dict[str, str]) -> str | None:
    if "anthropic-version" not in headers:
        return "anthropic-version: header is required"
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    marks = sum(block.is_marked for block in anthropic_prompt(body))
    if marks > MARKS_MAX:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    if body["messages"][0]["role"] != "user":
        return "messages: first message must use the user role"
    waiting: set[str] = set()
    for message in body["messages"]:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            return "messages: text content blocks must be non-empty"
        results = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
        if results != waiting:
            return f"tool_use ids {sorted(waiting)} and tool_result ids {sorted(results)} differ"
        waiting = {b["id"] for b in blocks if b["type"] == "tool_use"}
    return f"tool_use ids {sorted(waiting)} were left without tool_result" if waiting else None

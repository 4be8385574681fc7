"""Prompts as a provider sees them: their order, their size in tokens, and what its cache serves.

A token is four bytes here. The caches keep the rules of the real ones: OpenAI's serves the longest
common beginning from 1 024 tokens on, in steps of 128; Anthropic's writes at the marked blocks and
reads at them, or up to twenty blocks before.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import orjson

BYTES_PER_TOKEN = 4
MARKS_MAX = 4
_LOOK_BACK_BLOCKS = 20
_PROMPTS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Usage:
    """Input tokens include those read from the cache and those written to it."""

    input_tokens: int
    cached_tokens: int
    written_tokens: int
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    content: bytes
    is_marked: bool = False


def chat_prompt(body: dict[str, Any]) -> list[Block]:
    return _blocks(body.get("response_format"), *body.get("tools", ()), *body["messages"])


def responses_prompt(body: dict[str, Any]) -> list[Block]:
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    schema = body.get("text", {}).get("format")
    return _blocks(schema, *body.get("tools", ()), body.get("instructions"), *items)


def anthropic_prompt(body: dict[str, Any]) -> list[Block]:
    schema = body.get("output_config", {}).get("format")
    blocks = _blocks(schema, *body.get("tools", ()), *_content(body.get("system", [])))
    for message in body["messages"]:
        for part in _content(message["content"]):
            blocks += _blocks({"role": message["role"], **part})
    return blocks


def _content(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _blocks(*values: Any) -> list[Block]:
    return [
        Block(
            orjson.dumps(
                {key: part for key, part in value.items() if key != "cache_control"}
                if isinstance(value, dict)
                else value
            ),
            isinstance(value, dict) and "cache_control" in value,
        )
        for value in values
        if value is not None
    ]


def tokens_of(size_bytes: int) -> int:
    return -(-size_bytes // BYTES_PER_TOKEN)


class PrefixCache:
    """What one provider remembers, apart for each account, model and cache key."""

    def __init__(self, *, tokens_min: int = 1_024, step_tokens: int = 128) -> None:
        self.tokens_min = tokens_min
        self.step_tokens = step_tokens
        self._prompts: dict[Any, list[bytes]] = defaultdict(list)
        self._prefixes: dict[Any, set[bytes]] = defaultdict(set)

    def forget(self) -> None:
        """As if the life of all entries were over."""
        self._prompts.clear()
        self._prefixes.clear()

    def automatic(self, key: Any, blocks: list[Block]) -> Usage:
        """OpenAI's: the longest common beginning with an earlier prompt."""
        prompt = b"".join(block.content for block in blocks)
        kept = self._prompts[key]
        common = max((_common_bytes(prompt, earlier) for earlier in kept), default=0)
        tokens = common // BYTES_PER_TOKEN
        cached = tokens - tokens % self.step_tokens if tokens >= self.tokens_min else 0
        kept.append(prompt)
        del kept[:-_PROMPTS_KEPT]
        return Usage(tokens_of(len(prompt)), cached, 0)

    def marked(self, key: Any, blocks: list[Block]) -> Usage:
        """Anthropic's: only where blocks are marked."""
        ends: list[tuple[int, bytes]] = []
        digest, size = hashlib.sha256(), 0
        for block in blocks:
            digest.update(block.content)
            size += len(block.content)
            ends.append((tokens_of(size), digest.digest()))
        marks = [index for index, block in enumerate(blocks) if block.is_marked]
        known = self._prefixes[key]
        read = max(
            (
                tokens
                for mark in marks
                for tokens, prefix in ends[max(0, mark - _LOOK_BACK_BLOCKS) : mark + 1]
                if prefix in known
            ),
            default=0,
        )
        written = 0
        for mark in marks:
            tokens, prefix = ends[mark]
            if tokens >= self.tokens_min:
                known.add(prefix)
                written = max(written, tokens - read)
        return Usage(tokens_of(size), read, written)


def _common_bytes(one: bytes, other: bytes) -> int:
    """The length of the common beginning, by halving: prompts are long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

"""What is published about the product promises nothing about products of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted(
    path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.is_file()
)
CLIENT = (
    r"\b(ChatGPT|OpenAI|Claude|Anthropic|Codex|Cursor|VS Code|Copilot|Gemini|Le Chat|Perplexity)\b"
)
MENDS = (
    r"\b(fix(es|ed|ing)?|solv(es?|ed|ing)|resolv(es?|ed|ing)|repair(s|ed|ing)?|cur(es|ed|ing)"
    r"|unblock(s|ed|ing)?|remed(y|ies|ied)|hang(s|ing)? no (more|longer)|no longer hangs?"
    r"|makes? \S+ work)\b"
)


def claims(text: str) -> Iterator[str]:
    """Sentences that name a client and say that something of it is mended."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n{2,}|\|", text):
        joined = " ".join(sentence.split())
        if re.search(CLIENT, joined) and re.search(MENDS, joined, re.IGNORECASE):
            yield joined


@pytest.mark.requirement("000/R10", "001/R1")
def test_nothing_is_advertised_as_the_cure_of_a_named_client() -> None:
    assert {ROOT / "README.md", ROOT / "CHANGELOG.md"} <= {*TEXTS}
    found = {path.name: [*claims(path.read_text(encoding="utf-8"))] for path in TEXTS}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize(
    "text",
    [
        "This release fixes the ChatGPT connector.",
        "- Streams: this unblocks\n  Cursor at last.",
        "| 0.2 | Claude Desktop no longer hangs |",
    ],
)
def test_such_a_claim_is_noticed(text: str) -> None:
    assert [*claims(text)]


def test_naming_a_client_is_no_claim() -> None:
    assert not [*claims("Works with ChatGPT and Claude. A race in the writer was fixed.")]

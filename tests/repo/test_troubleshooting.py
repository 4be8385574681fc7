"""The headings of docs/troubleshooting.md are messages that the product really gives."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
_GAP = "\0"


def headings() -> list[str]:
    return re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@cache
def messages() -> frozenset[str]:
    """Every text in the source with its values left out, and its beginnings up to a mark."""
    texts = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else _GAP
                         for part in node.values)  # fmt: skip
                texts.add(re.sub(f"{_GAP}+", _GAP, "".join(map(str, parts))))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    beginnings = {text[: end.start()] for text in texts for end in re.finditer(r"[.:;?]", text)}
    return frozenset(texts | beginnings)


def is_said(heading: str) -> bool:
    wanted = heading.rstrip(".?")
    for text in messages():
        pieces = text.rstrip(".?").split(_GAP)
        is_most = sum(map(len, pieces)) > len(wanted) / 2
        is_near = is_most and all(piece in wanted for piece in pieces)
        if is_near and re.fullmatch(".+".join(map(re.escape, pieces)), wanted):
            return True
    return False


@pytest.mark.parametrize("heading", headings())
def test_the_product_says_this(heading: str) -> None:
    assert is_said(heading)


def test_other_words_are_noticed() -> None:
    assert not is_said("This server does not listen to that Host")
    assert not is_said("Cannot serve at 127.0.0.1, port 8321: Address already in use.")

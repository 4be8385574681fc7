"""Tokens: exact where the tables are known, counted a little at a time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.pack.project import O200K
from zibaldone.limits import PACK_COUNT_SLICE_CHARS
from zibaldone.model.assistant import Assistant
from zibaldone.pack.tokens import TokenCounter, encoding_of


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k"),
        ("gpt-4.1-mini", "o200k"),
        ("gpt-5.2", "o200k"),
        ("o3-pro", "o200k"),
        ("openai/gpt-oss-120b", "o200k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-3.5-turbo", "cl100k"),
        ("claude-sonnet-5", "estimate"),
        ("smollm2-135m", "estimate"),
    ],
)
def test_the_name_of_a_model_chooses_the_encoding(model: str, encoding: str) -> None:
    assert encoding_of(Assistant("a", "openai", model)) == encoding
    assert encoding_of(Assistant("a", "openai", model, encoding="cl100k")) == "cl100k"


def test_known_counts() -> None:
    text = "Der Zibaldone ist ein Notizbuch, das waechst."
    assert O200K.count("hello world") == TokenCounter("cl100k").count("hello world") == 2
    assert O200K.count("") == 0
    assert TokenCounter("estimate").count(text) == -(-O200K.count(text) * 13 // 10)


@pytest.mark.parametrize("encoding", ["o200k", "cl100k"])
def test_slices_add_up(encoding: Any) -> None:
    counter = TokenCounter(encoding)
    generator = random.Random(2)
    words = [
        "def",
        " f(x):",
        "\n",
        "\n\n    ",
        "  ",
        "/",
        "\n//",
        " x",
        "'ll",
        "42",
        "é",
        "\t",
        "\r\n",
    ]
    for _ in range(5):
        text = "".join(generator.choices(words, k=30_000))
        assert len(text) > PACK_COUNT_SLICE_CHARS
        assert counter.count(text) == counter._tokenizer.count(text)


def test_a_text_without_lines_or_words_is_cut_anywhere() -> None:
    text = "x" * (3 * PACK_COUNT_SLICE_CHARS + 7)
    assert abs(O200K.count(text) - O200K._tokenizer.count(text)) <= 3

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.limits import (
    FRONT_MATTER_ALIASES_MAX,
    FRONT_MATTER_BLOCK_CHARS_MAX,
    FRONT_MATTER_DEPTH_MAX,
    FRONT_MATTER_VALUES_MAX,
)
from zibaldone.text.frontmatter import FrontMatter, read_front_matter

# One note as a memory hook writes them.
LEARNING = """\
---
capture_type: LEARNING
timestamp: 2026-01-20 10:30:00 PST
session_id: 0123-abcd
rating: 8
source: explicit
tags: [mcp, "session id", 42]
auto_captured: true
---

# Read the status first
"""


class TestReading:
    @pytest.mark.requirement("SC-38")
    def test_a_note_of_a_hook(self) -> None:
        front = read_front_matter(LEARNING)
        assert front == FrontMatter(
            values={
                "capture_type": "LEARNING",
                "timestamp": "2026-01-20 10:30:00 PST",
                "session_id": "0123-abcd",
                "rating": 8,
                "source": "explicit",
                "tags": ["mcp", "session id", 42],
                "auto_captured": True,
            },
            body="\n# Read the status first\n",
        )

    def test_windows_line_ends_and_a_byte_order_mark(self) -> None:
        front = read_front_matter("\ufeff---\r\ntitle: Über\r\ntags:\r\n  - a\r\n---\r\nText\r\n")
        assert front.values == {"title": "Über", "tags": ["a"]}
        assert front.body == "Text\r\n"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "Text",
            "--- \nText\n---\n more"[4:],
            "---\n\nA rule begins this.\n",
            "----\na: b\n---\n",
        ],
    )
    def test_a_text_without(self, text: str) -> None:
        assert read_front_matter(text) == FrontMatter(body=text)

    def test_an_empty_block(self) -> None:
        assert read_front_matter("---\n---\nText") == FrontMatter(body="Text")
        assert read_front_matter("---\n# nothing\n...\nText") == FrontMatter(body="Text")

    def test_words_stay_words(self) -> None:
        front = read_front_matter(
            "---\ndate: 2026-13-45\ntime: 12:30:00\nanswer: no\nzip: 007\nnone:\n1: one\n"
            "huge: 1e999\n---\n"
        )
        assert front.values == {
            "date": "2026-13-45",
            "time": "12:30:00",
            "answer": "no",
            "zip": "007",
            "none": None,
            "1": "one",
            "huge": "inf",
        }

    def test_nested_values_and_merges(self) -> None:
        front = read_front_matter("---\nbase: &b {a: 1}\nmore:\n  <<: *b\n  c: [1, {d: x}]\n---\n")
        assert front.values == {"base": {"a": 1}, "more": {"a": 1, "c": [1, {"d": "x"}]}}

    def test_a_multi_line_text_with_dashes_inside(self) -> None:
        front = read_front_matter("---\nsummary: |\n  one\n  ---\n  two\n---\nText")
        assert front.values == {"summary": "one\n---\ntwo\n"}


class TestBroken:
    @pytest.mark.parametrize(
        ("block", "reason"),
        [
            ("title: a: b", "is not valid YAML (line 2): mapping values are not allowed"),
            ("title: [a", "is not valid YAML"),
            ("- a\n- b", "is not a list of keys and values"),
            ("a: !!python/object/apply:os.system [echo]", "is not valid YAML"),
            ("a: !!int none", "is not valid YAML"),
            ("a: !!timestamp none", "is not valid YAML"),
            ("a: " + "9" * 5_000, "is not valid YAML"),
            ("a: &a [*a]", f"has more than {FRONT_MATTER_VALUES_MAX} values"),
        ],
    )
    def test_is_reported_and_kept_in_the_text(self, block: str, reason: str) -> None:
        text = f"---\n{block}\n---\nText"
        front = read_front_matter(text)
        assert front.body == text
        assert front.values == {}
        assert front.problem.startswith(f"The front matter {reason}")

    def test_without_an_end(self) -> None:
        assert "no closing line" in read_front_matter("---\ntitle: a\nText").problem
        long = "---\ntitle: " + "x" * FRONT_MATTER_BLOCK_CHARS_MAX + "\n---\n"
        assert "does not end within" in read_front_matter(long).problem

    def test_bounds(self) -> None:
        deep = "a: " + "[" * FRONT_MATTER_DEPTH_MAX + "]" * FRONT_MATTER_DEPTH_MAX
        many = "a: &a x\nb: [" + "*a, " * (FRONT_MATTER_ALIASES_MAX + 1) + "]"
        laughs = "\n".join(
            f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 5 if n else ['x'] * 400)}]" for n in range(4)
        )
        for block, reason in (
            (deep, "levels deep"),
            (many, "aliases"),
            (laughs, "values"),
        ):
            assert reason in read_front_matter(f"---\n{block}\n---\n").problem

    def test_merges_are_counted_before_they_are_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nine aliases of 4 000 keys would make a million: it takes seconds and much memory."""
        monkeypatch.setattr(yaml, "load", lambda *_, **__: pytest.fail("it was built"))
        keys = ", ".join(f"k{n}: 0" for n in range(4_000))
        doubled = (f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 9))
        block = "\n".join((f"m0: &m0 {{{keys}}}", *doubled))
        assert "values" in read_front_matter(f"---\n{block}\n---\n").problem


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>%@`'\"#?, \n\t0.~<"), max_size=80))
def test_never_fails_and_gives_what_json_holds(block: str) -> None:
    text = f"---\n{block}\n---\nText"
    front = read_front_matter(text)
    json.dumps(front.values, allow_nan=False)
    assert front.body in text
    assert not (front.problem and front.values)

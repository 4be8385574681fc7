from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.errors import LimitExceeded
from zibaldone.limits import JSON_VALUES_MAX
from zibaldone.text.json_values import load_json

_TEXTS = st.text(st.sampled_from('a",[{}]\\:é\n'), max_size=12)
_VALUES = st.recursive(
    st.none() | st.integers(0, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=20,
)


def _count(value: Any) -> int:
    """Strings, commas and opening brackets of a value."""
    match value:
        case str():
            return 1
        case list():
            return 1 + max(len(value) - 1, 0) + sum(map(_count, value))
        case dict():
            return 1 + max(len(value) - 1, 0) + len(value) + sum(map(_count, value.values()))
    return 0


@given(_VALUES, st.booleans())
def test_values_are_counted_and_what_is_in_strings_is_not(value: Any, ascii_only: bool) -> None:
    padding = " " * 1_000  # a short text is not counted at all
    data = (json.dumps(value, ensure_ascii=ascii_only) + padding).encode()
    count = _count(value)
    assert load_json(data, count) == value
    if count:
        with pytest.raises(LimitExceeded):
            load_json(data, count - 1)


@pytest.mark.parametrize("data", [b"", b"{", b'"\\', b"[" * 2_000, b'{"a":1}x', b"\xff"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_json(data)


@pytest.mark.parametrize("part", [b"[],", b'"",', b"0,", b'{"a":0},', b'"\\"",'], ids=bytes.decode)
def test_many_values_are_refused_in_no_time(part: bytes) -> None:
    data = b"[" + part * (16_000_000 // len(part)) + b"0]"
    started_s = time.thread_time()
    with pytest.raises(LimitExceeded):
        load_json(data)
    assert time.thread_time() - started_s < 3


@pytest.mark.parametrize("text", ["a,b,", '"quoted" ', "[x](y) ", "\\\\ "])
def test_a_long_text_may_have_any_characters(text: str) -> None:
    content = text * (JSON_VALUES_MAX + 1)
    assert load_json(json.dumps({"content": content}).encode()) == {"content": content}

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.errors import LimitExceeded
from zibaldone.limits import JSON_VALUES_MAX
from zibaldone.text.json_values import ValueCount, load_json

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


@given(_VALUES, st.lists(st.integers(0, 200), max_size=6))
def test_parts_may_begin_and_end_anywhere(value: Any, cuts: list[int]) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    count = ValueCount()
    for start, end in pairwise((0, *sorted(cuts), len(data) + 200)):
        count.add(data[start:end])
    assert count.values == _count(value)


@pytest.mark.parametrize("part", [b"a,", b"\\n", b'\\"', b"\\\\", b'\\",[{', "é".encode()])
def test_others_can_be_served_while_a_long_body_is_counted(part: bytes) -> None:
    data = b'{"content":"' + part * (32_000_000 // len(part)) + b'"}'
    count = ValueCount()
    longest_s = 0.0
    for start in range(0, len(data), 256_000):
        started_s = time.thread_time()
        count.add(data[start : start + 256_000])
        longest_s = max(longest_s, time.thread_time() - started_s)
    assert longest_s < 0.1
    started_s = time.thread_time()
    load_json(data, count=count)
    # To count all of it once more would take up to a quarter of a second.
    assert time.thread_time() - started_s < 0.15


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

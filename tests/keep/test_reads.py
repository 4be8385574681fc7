from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.keep.reads import Range, cut_out
from zibaldone.limits import READ_LINES_MAX


@given(
    st.lists(st.sampled_from(["", "a", "long " * 900]), max_size=40),
    st.integers(1, 45),
    st.integers(1, 12),
)
def test_lines_are_those_between_line_ends(lines: list[str], first: int, count: int) -> None:
    body = "\n".join(lines)
    split = body.split("\n")
    part = cut_out(body, Range(from_line=first, line_count=count))
    assert part.text == "\n".join(split[first - 1 : first - 1 + count])
    has_more = first - 1 + count < len(split)
    assert (part.truncated, part.next_line) == (has_more, first + count if has_more else None)


@pytest.mark.parametrize("first", [1, 5_000_000, 10_000_000, 10**15])
def test_millions_of_lines_are_not_made(first: int) -> None:
    body = "\n" * 10_000_000
    started_s = time.process_time()
    part = cut_out(body, Range(from_line=first))
    assert time.process_time() - started_s < 0.2
    assert len(part.text) <= READ_LINES_MAX

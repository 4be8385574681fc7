"""Replacing in pieces is replacing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.text.replace import count, replace


@given(
    st.text("ab", max_size=200),
    st.text("ab", min_size=1, max_size=6),
    st.text("abc", max_size=4),
    st.integers(1, 20),
)
def test_like_the_built_in_ones(text: str, old: str, new: str, piece_chars: int) -> None:
    assert count(text, old, piece_chars) == text.count(old)
    assert replace(text, old, new, piece_chars) == text.replace(old, new)


@pytest.mark.parametrize("size_chars", [65_534, 65_535, 65_536, 65_537, 65_538, 131_072])
def test_a_place_at_the_border_of_a_piece(size_chars: int) -> None:
    text = "-" * (size_chars - 1) + "abc" + "-" * 10
    assert count(text, "abc") == 1
    assert replace(text, "abc", "x") == text.replace("abc", "x")

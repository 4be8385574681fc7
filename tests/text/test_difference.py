from __future__ import annotations

import difflib
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.errors import LimitExceeded
from zibaldone.limits import DIFF_CHARS_MAX, DIFF_LINES_MAX
from zibaldone.text.difference import changed_blocks, unified_diff

_LINES = st.lists(st.sampled_from("abcd"), max_size=30)


def _longest_common(first: list[str], second: list[str]) -> int:
    """By the textbook, to compare with."""
    row = [0] * (len(second) + 1)
    for line in first:
        above = row[:]
        for place, other in enumerate(second, 1):
            row[place] = (
                above[place - 1] + 1 if line == other else max(above[place], row[place - 1])
            )
    return row[-1]


def _apply(before: str, diff: str) -> list[str]:
    """What `patch` would make of it."""
    old = before.splitlines()
    made: list[str] = []
    at = 0
    for line in diff.splitlines()[2:]:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            first = int(start) - 1 if length != "0" else int(start)
            made += old[at:first]
            at = first
        elif line[0] == "+":
            made.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            if line[0] == " ":
                made.append(line[1:])
    return made + old[at:]


class TestUnifiedDiff:
    @given(_LINES, _LINES)
    def test_makes_one_side_of_the_other(self, first: list[str], second: list[str]) -> None:
        before, after = "\n".join(first), "\n".join(second)
        diff = unified_diff(before, after, "a", "b")
        assert _apply(before, diff.text) == after.splitlines()
        assert (diff.text == "") == (before.splitlines() == after.splitlines())
        assert not diff.truncated

    @given(_LINES, _LINES)
    def test_keeps_as_many_lines_as_possible(self, first: list[str], second: list[str]) -> None:
        removed = sum(block.end - block.start for block in changed_blocks(first, second))
        assert len(first) - removed == _longest_common(first, second)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("", "one"),
            ("one", ""),
            ("one\ntwo\nthree", "one\n2\nthree"),
            ("\n".join(string.ascii_lowercase), "\n".join("A" + string.ascii_lowercase[1:-1])),
            ("a\nb", "a\nnew\nb"),
            ("x\n" * 50 + "y", "x\n" * 50 + "z"),
        ],
    )
    def test_is_written_as_usual(self, before: str, after: str) -> None:
        usual = difflib.unified_diff(before.splitlines(), after.splitlines(), "a", "b", lineterm="")
        assert unified_diff(before, after, "a", "b").text == "\n".join(usual)

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\x1e"])
    def test_has_a_largest_number_of_lines(self, end: str) -> None:
        with pytest.raises(LimitExceeded):
            unified_diff(f"x{end}" * (DIFF_LINES_MAX + 1), "x", "a", "b")
        unified_diff(f"x{end}" * (DIFF_LINES_MAX - 1), "x", "a", "b")

    def test_has_a_largest_size(self) -> None:
        diff = unified_diff("\n".join("x" * 100 for _ in range(15_000)), "y", "a", "b")
        assert diff.truncated
        assert DIFF_CHARS_MAX - 300 < len(diff.text) <= DIFF_CHARS_MAX + 20

    def test_takes_no_longer_for_lines_made_to_take_long(self) -> None:
        """difflib takes minutes for the first and hours for the second."""
        lines = DIFF_LINES_MAX - 2
        letters = string.ascii_letters
        cycled = [
            "\n".join(letters[n // 2 % 52] if n % 2 == 0 else f"{side}{n}" for n in range(lines))
            for side in "ab"
        ]
        numbers = [str(n) for n in range(lines)]
        chance = random.Random(1)
        shuffled = ["\n".join(chance.sample(numbers, lines)) for _ in range(2)]
        started_s = time.thread_time()
        for before, after in (cycled, shuffled):
            unified_diff(before, after, "a", "b")
        assert time.thread_time() - started_s < 10

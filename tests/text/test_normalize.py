from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zibaldone.errors import InvalidArgument
from zibaldone.limits import COMBINING_MARKS_MAX, TAG_CHARS_MAX, TITLE_CHARS_MAX
from zibaldone.text import normalize
from zibaldone.text.facets import facets_of, fold_tag
from zibaldone.text.words import aligned_fold, fold_case

_MARKS = "\u0301\u0323"


def _stacked(count: int) -> str:
    """Alternating marks are what ordering is slowest at."""
    return "a" + (_MARKS * (count // 2 + 1))[:count]


class TestNormalForm:
    @given(st.text(st.sampled_from("aé한\u0301\u0323\u0f71\u3099 "), max_size=60))
    def test_is_unicodes_own_for_ordinary_text(self, text: str) -> None:
        if max(map(len, _mark_runs(text)), default=0) <= COMBINING_MARKS_MAX:
            assert normalize.normal_form("NFC", text) == unicodedata.normalize("NFC", text)

    @given(
        st.lists(st.tuples(st.text("aé ", max_size=3), st.integers(0, 90)), max_size=6),
        st.sampled_from(["NFC", "NFD", "NFKC"]),
    )
    def test_keeps_the_first_marks_of_each_character(
        self, parts: list[tuple[str, int]], form: str
    ) -> None:
        text = "".join(letters + "\u0301" * count for letters, count in parts)
        kept = "".join(
            run if run[0] != "\u0301" else run[:COMBINING_MARKS_MAX] for run in _all_runs(text)
        )
        made = normalize.normal_form(form, text)  # type: ignore[arg-type]
        assert made == unicodedata.normalize(form, kept)  # type: ignore[arg-type]

    def test_takes_no_longer_for_stacked_marks(self) -> None:
        started_s = time.thread_time()
        for text in (_stacked(500_000), _stacked(COMBINING_MARKS_MAX) * 10_000):
            normalize.normal_form("NFKC", text)
            fold_tag(text)
            fold_case(text)
        assert time.thread_time() - started_s < 5


def _all_runs(text: str) -> list[str]:
    """Marks and what is between them, in turn."""
    runs: list[str] = []
    for char in text:
        if runs and (runs[-1][0] == "\u0301") == (char == "\u0301"):
            runs[-1] += char
        else:
            runs.append(char)
    return runs


def _mark_runs(text: str) -> list[str]:
    spaced = "".join(char if unicodedata.combining(char) else " " for char in text)
    return spaced.split()


class TestNames:
    @pytest.mark.parametrize("count", [COMBINING_MARKS_MAX + 1, 1_500])
    def test_with_too_many_marks_on_a_character_are_refused(self, count: int) -> None:
        name = f"x/{_stacked(count)}"[:2000]
        with pytest.raises(InvalidArgument, match="combining marks"):
            normalize.document_id(name)
        with pytest.raises(InvalidArgument, match="combining marks"):
            normalize.prefix(name)
        with pytest.raises(InvalidArgument, match="combining marks"):
            normalize.title(_stacked(count))
        with pytest.raises(InvalidArgument, match="combining marks"):
            normalize.tags([_stacked(count)])

    def test_with_as_many_as_allowed_are_kept(self) -> None:
        name = _stacked(COMBINING_MARKS_MAX)
        assert normalize.title(name) == unicodedata.normalize("NFC", name)

    def test_are_measured_before_anything_else(self) -> None:
        started_s = time.thread_time()
        for refused in (normalize.title, lambda text: normalize.tags([text])):
            with pytest.raises(InvalidArgument, match="characters"):
                refused(_stacked(10_000_000))
        assert time.thread_time() - started_s < 4

    def test_are_measured_without_superfluous_blanks(self) -> None:
        assert normalize.tags(["a" + " " * TAG_CHARS_MAX + "b"]) == ("a b",)
        assert normalize.title("a" + " " * TITLE_CHARS_MAX) == "a"


class TestFolding:
    def test_spells_out_compatibility_characters(self) -> None:
        assert fold_case("ﷺ") == "صلى الله عليه وسلم"

    def test_of_nothing_else_stays_within_a_bound(self) -> None:
        assert len(fold_case("\ufdfa" * 1_000)) < 2_200
        folded, places = aligned_fold("\ufdfa" * 1_000)
        assert len(folded) < 2_200
        assert len(places) == len(folded) + 1


def test_metadata_tags_are_folded_in_no_time() -> None:
    started_s = time.thread_time()
    facets_of([], {"Tags": [_stacked(30_000)]}, 0)
    assert time.thread_time() - started_s < 3

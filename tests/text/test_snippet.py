"""Where the words of a query stand in a text, and what is shown of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.text.queries import QUERIES
from zibaldone.text.query import parse_query
from zibaldone.text.snippet import cut, matches, snippet, spans


def highlighted(text: str, query: str) -> list[tuple[int, int]]:
    return spans(matches(text, parse_query(query)), 0, len(text))


class TestHighlights:
    @pytest.mark.parametrize(
        ("text", "query", "shown"),
        [
            ("Committees configure aircraft.", "configuration", ["configure"]),
            ("Die größte Straße", "grosste strasse", ["größte", "Straße"]),
            ("Stra\u00dfe a\u0308ber äber", "äber", ["a\u0308ber", "äber"]),
            ("bóng đá", "bong", ["bóng"]),
            ("東京都庁", "京都", ["京都"]),
            ("東京都庁", "東京都", ["東京都"]),
            ("東京都庁", "庁", ["庁"]),
            ("the HTTPServer runs", "server", ["HTTPServer"]),
            ("call json_extract now", "json_extract", ["json_extract"]),
            ("call json_extract now", "extract", ["extract"]),
            ("C, C++ and C#", "c++", ["C++"]),
            ("configures the core", "conf*", ["configures"]),
            ("a red fox, a fox red", '"red fox"', ["red", "fox", "fox", "red"]),
            ("fox and hound", "fox -hound", ["fox"]),
            ("ﬁnd the ﬁeld", "find", ["ﬁnd"]),
            ("हिन्दी भाषा", "भाषा", ["भाषा"]),
            ("nothing here", "absent", []),
            ("text", "", []),
        ],
    )
    def test_show_why_a_text_matched(self, text: str, query: str, shown: list[str]) -> None:
        assert [text[a:z] for a, z in highlighted(text, query)] == shown

    @given(st.text(), QUERIES)
    @example("ΐß\u0301ﬃ", "ffi*")
    def test_are_ordered_stretches_of_the_text(self, text: str, query: str) -> None:
        for searched in (text, text + " " + query):
            found = highlighted(searched, query)
            places = [place for span in found for place in span]
            assert places == sorted(places)
            assert all(start < end for start, end in found)
            assert not places or (places[0] >= 0 and places[-1] <= len(searched))


class TestSnippets:
    TEXT = (
        "The first part speaks of nothing much at all. " * 6
        + "Here the red fox meets the old hound in the wood. "
        + "And the last part is about a fox again, at some length. " * 6
    )

    def test_show_the_place_that_holds_most_of_the_query(self) -> None:
        shown, start = snippet(self.TEXT, parse_query("fox hound wood"), 80)
        assert "fox" in shown
        assert "hound" in shown
        assert "wood" in shown
        assert self.TEXT[start : start + len(shown)] == shown

    def test_begin_and_end_between_words(self) -> None:
        shown, start = snippet(self.TEXT, parse_query("hound"), 60)
        assert self.TEXT[start - 1] == " "
        assert not self.TEXT[start + len(shown)].isalnum()

    def test_without_a_match_show_the_beginning(self) -> None:
        shown, start = snippet(self.TEXT, parse_query("absent"), 60)
        assert start == 0
        assert self.TEXT.startswith(shown)

    def test_of_a_short_text_are_all_of_it(self) -> None:
        assert snippet("A short text.", parse_query("short"), 300) == ("A short text.", 0)

    def test_in_a_script_without_spaces(self) -> None:
        text = (
            "東京都庁舎は新宿区にあります。" * 20
            + "大阪城公園は大阪市にあります。"
            + "終わり。" * 50
        )
        shown, start = snippet(text, parse_query("大阪城"), 40)
        assert "大阪城公園" in shown
        assert text[start : start + len(shown)] == shown

    @given(st.text(), QUERIES, st.integers(1, 60))
    def test_are_stretches_of_the_text_that_fit(
        self, text: str, query: str, chars_max: int
    ) -> None:
        for searched in (text, text + " " + query + " " + text):
            shown, start = snippet(searched, parse_query(query), chars_max)
            assert len(shown) <= chars_max
            assert searched[start : start + len(shown)] == shown

    @given(st.text(), QUERIES, st.integers(1, 60))
    def test_hold_the_matches_that_are_wholly_inside(
        self, text: str, query: str, chars_max: int
    ) -> None:
        searched = text + " " + query + " " + text
        found = matches(searched, parse_query(query))
        shown, start = cut(searched, found, chars_max)
        inside = spans(found, start, start + len(shown))
        everywhere = spans(found, 0, len(searched))
        for first, last in inside:
            assert 0 <= first < last <= len(shown)
            assert any(a <= start + first and start + last <= z for a, z in everywhere)

from __future__ import annotations

import tracemalloc
from itertools import chain
from unicodedata import category

import pytest

from zibaldone.limits import INDEX_TERMS_MAX, TERM_CHARS_MAX
from zibaldone.text.stem import stem
from zibaldone.text.terms import chunk_terms, index_terms


class TestIndexTerms:
    def test_words_come_first_and_further_forms_in_runs_of_their_own(self) -> None:
        assert index_terms("Straßen in Köln: json_extract, getURL") == [
            ["strassen", "in", "koln", "json", "extract", "geturl"],
            ["köln", "json_extract"],
            ["get", "url"],
        ]

    def test_all_of_them_are_stemmed(self) -> None:
        assert index_terms("Relational configurations: RelationalConfigurations") == [
            ["relat", "configur", "relationalconfigur"],
            [],
            ["relat", "configur"],
        ]

    def test_a_word_keeps_its_combining_marks(self) -> None:
        marks = [chr(code) for code in range(0x110000) if category(chr(code))[0] == "M"]
        assert len(marks) > 2000
        parted = [mark for mark in marks if len(index_terms(f"ab{mark}cd")[0][0]) < 4]
        assert parted == []

    @pytest.mark.parametrize("text", ["", "  \n", "!?…", "\ud800", "|", "\u0301\u0302"])
    def test_text_without_words_has_none(self, text: str) -> None:
        assert index_terms(text) == [[]]

    def test_a_long_run_is_cut(self) -> None:
        assert index_terms("x" * 5000) == [["x" * TERM_CHARS_MAX]]

    def test_a_blob_stays_small(self) -> None:
        blob = ("abcdEFGH0123+/" * 100)[:1400]
        terms = [*chain.from_iterable(index_terms(blob))]
        assert max(map(len, terms)) <= TERM_CHARS_MAX
        assert sum(map(len, terms)) < 3 * len(blob)

    @pytest.mark.parametrize("unit", ["a ", "東", "a_b.", "aB ", "é-", "ก", "a\u0301"])
    def test_their_number_is_bounded(self, unit: str) -> None:
        runs = index_terms(unit * 1_000_000)
        assert sum(map(len, runs)) + len(runs) - 1 <= INDEX_TERMS_MAX


def test_the_terms_of_a_chunk_take_little_room() -> None:
    """A long document has some thousand chunks, and millions of terms. One of an unspaced script
    has a term for each character."""
    text = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(1_000))
    chunk_terms("", "", text[::-1])  # what is prepared once
    tracemalloc.start()
    try:
        made = chunk_terms("", "", text)
        stem.cache_clear()
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(made.body) == index_terms(text)
    assert size_bytes < 10 * len(text.encode())

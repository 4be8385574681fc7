from __future__ import annotations

import pytest

from zibaldone.limits import QUERY_TERMS_COUNTED_MAX, QUERY_TERMS_MAX, QUERY_WISH_WORDS_MAX
from zibaldone.model.query import Query
from zibaldone.text.query import parse_query


class TestParseQuery:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", Query()),
            ("Similarity laws", Query(terms=("similarity", "laws"))),
            ("what is the lift", Query(terms=("lift",))),
            ("to be or not to be", Query(terms=("to", "be", "or", "not"))),
            ("cat cat CAT", Query(terms=("cat",))),
            ('"red fox"', Query(phrases=(("red", "fox"),))),
            (
                '"red fox" "the den" -hound',
                Query(phrases=(("red", "fox"), ("the", "den")), excluded=(("hound",),)),
            ),
            ('+"red fox" the den', Query(terms=("den",), phrases=(("red", "fox"),))),
            ('"red fox" the den', Query(terms=("red", "fox", "den"), wishes=(("red", "fox"),))),
            ('"to be" den', Query(terms=("den",), wishes=(("to", "be"),))),
            ('fox+"hen den" +owl', Query(terms=("fox", "hen", "den", "owl"))),
            ('say "hello', Query(terms=("say", "hello"))),
            ('12" pipe 3" tube', Query(terms=("12", "pipe", "3", "tube"))),
            ('""', Query()),
            ("fox -hound", Query(terms=("fox",), excluded=(("hound",),))),
            ('fox -"old hound"', Query(terms=("fox",), excluded=(("old", "hound"),))),
            ("foo-bar x - y --flag", Query(terms=("foo-bar", "x", "y", "flag"))),
            ("-only", Query(excluded=(("only",),))),
            ("code -.net -> x", Query(terms=("code", "x"), excluded=((".net",),))),
            ("Title:Intro rest", Query(terms=("rest",), title_terms=("intro",))),
            ('title:"two words"', Query(title_terms=("two", "words"))),
            ("title: x", Query(terms=("title", "x"))),
            ("config* b*", Query(terms=("b",), prefixes=("config",))),
            ("a*b *x", Query(terms=("b", "x"))),
            ("json_ex*", Query(prefixes=("json_ex",))),
            ("fox AND hound OR NEAR(x)", Query(terms=("fox", "hound", "near", "x"))),
            ("全文检索", Query(terms=("全文", "文检", "检索"))),
            ("库", Query(terms=("库",))),
            ("c++ .net c#", Query(terms=("c++", ".net", "c#"))),
            ("it's", Query(terms=("it", "s"))),
        ],
    )
    def test_reads_a_small_language(self, query: str, expected: Query) -> None:
        assert parse_query(query) == expected

    def test_says_how_many_terms_it_left_out(self) -> None:
        query = parse_query(" ".join(f"word{nth}" for nth in range(QUERY_TERMS_MAX + 7)))
        assert (len(query.terms), query.ignored) == (QUERY_TERMS_MAX, 7)

    def test_keeps_further_terms_up_to_a_number_for_the_case_that_they_are_rarer(self) -> None:
        words = [f"word{nth}" for nth in range(QUERY_TERMS_COUNTED_MAX + 7)]
        query = parse_query(" ".join(words))
        assert query.terms == tuple(words[:QUERY_TERMS_MAX])
        assert query.spare_terms == tuple(words[QUERY_TERMS_MAX:QUERY_TERMS_COUNTED_MAX])
        assert query.ignored == len(words) - QUERY_TERMS_MAX

    def test_keeps_the_beginning_of_a_phrase_that_is_too_long(self) -> None:
        words = [f"word{nth}" for nth in range(QUERY_TERMS_MAX + 7)]
        query = parse_query(f'+"{" ".join(words)}" beyond')
        assert query.phrases == (tuple(words[:QUERY_TERMS_MAX]),)
        assert query.ignored == 8


class TestSentences:
    """In a sentence, what looks like an operator is a word."""

    @pytest.mark.parametrize(
        "query",
        [
            "what does grep -v do",
            "grep -v lines?",
            "why is title:x there in the list",
            "how do I match every confi* file",
            "warum findet grep -v keine zeilen in der datei",
            " ".join(["palabra"] * 12 + ["-v"]),
        ],
    )
    def test_operators_are_words(self, query: str) -> None:
        parsed = parse_query(query)
        assert len(parsed.plain_operators) == 1
        assert (parsed.excluded, parsed.title_terms, parsed.prefixes) == ((), (), ())
        assert parsed.terms

    @pytest.mark.parametrize(
        "query",
        [
            "grep -v",
            "the grep -v",
            "palabra otra tercera cuarta quinta -v",
            'what does grep do with -"v" here?',
            'what does the title:"v" say here?',
        ],
    )
    def test_operators_are_meant(self, query: str) -> None:
        parsed = parse_query(query)
        assert not parsed.plain_operators
        assert parsed.excluded == (("v",),) or parsed.title_terms == ("v",)

    def test_a_quotation_is_a_wish(self) -> None:
        parsed = parse_query('What did Melanie read in "Nothing is Impossible"?')
        assert parsed.wishes == (("nothing", "is", "impossible"),)
        assert {"nothing", "impossible", "melanie", "read"} <= {*parsed.terms}
        assert not parsed.phrases

    def test_of_long_quotations_the_beginning_is_looked_for(self) -> None:
        words = tuple(f"word{nth}" for nth in range(QUERY_WISH_WORDS_MAX + 7))
        parsed = parse_query(f'Who said "{" ".join(words)}" and "more" to whom?')
        assert parsed.wishes == (words[:QUERY_WISH_WORDS_MAX],)

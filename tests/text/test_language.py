# ruff: noqa: RUF001 (other scripts have letters that look like ours)
from __future__ import annotations

import pytest

from zibaldone.model.query import Query
from zibaldone.text.language import language_of, language_stem
from zibaldone.text.lookups import Lookup, wanted_lookups
from zibaldone.text.query import parse_query
from zibaldone.text.snippet import matches
from zibaldone.text.terms import chunk_terms, index_terms
from zibaldone.text.words import fold_case, lexemes

GERMAN = "In der Stadt steht ein Haus, und das ist sehr alt. Wo ist der Garten?"


def told(text: str) -> str:
    return language_of(lexemes(fold_case(text)))


class TestLanguage:
    @pytest.mark.parametrize(
        ("language", "text"),
        [
            ("ar", "كم عدد النقاط التي سجلها الفريق؟"),
            ("cs", "Kolik obyvatel má město, ve kterém se narodil?"),
            ("da", "Hvor mange indbyggere har byen, og hvornår blev den grundlagt?"),
            ("de", "Wie viele Häuser gibt es in der Stadt?"),
            ("el", "Πόσους πόντους έδωσε η άμυνα;"),
            ("en", "How many houses are in the town?"),
            ("es", "¿Cuántas casas hay en la ciudad?"),
            ("fa", "چند نفر در این شهر زندگی می‌کنند؟"),
            ("fi", "Kuinka monta taloa kaupungissa on ja missä ne ovat?"),
            ("fr", "Combien de maisons y a-t-il dans la ville ?"),
            ("hi", "पैंथर्स के बचाव ने कितने अंक दिए?"),
            ("hu", "Hány ház van a városban, és hol vannak?"),
            ("it", "Quante case ci sono nella città?"),
            ("nl", "Hoeveel huizen zijn er in de stad?"),
            ("pl", "Ile domów jest w tym mieście i gdzie się znajdują?"),
            ("pt", "Quantas casas há na cidade onde ele nasceu?"),
            ("ro", "Câte case sunt în oraș și unde se află?"),
            ("ru", "Сколько домов в городе?"),
            ("sv", "Hur många hus finns det i staden?"),
            ("tr", "Şehirde kaç tane ev var ve bunlar nerede?"),
            ("uk", "Скільки будинків у місті?"),
            ("vi", "Có bao nhiêu ngôi nhà trong thành phố?"),
        ],
    )
    def test_a_question_tells_its_language(self, language: str, text: str) -> None:
        assert told(text) == language

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "zebra",
            "Häuser",
            "python dir is writable",
            "def smooth(image, sigma=1, mode=None): return image",
            "東京 の 大学",
            "ผู้คน ใน เมือง",
            "1234 5678",
            "\ud800",
        ],
    )
    def test_too_little_tells_nothing(self, text: str) -> None:
        assert told(text) in ("", "en")

    def test_words_that_two_languages_share_tell_neither(self) -> None:
        assert told("og ikke jeg har det") == ""  # Danish as much as Norwegian

    def test_as_much_english_as_something_else_is_neither(self) -> None:
        german = "und nicht auch wird durch zwischen wenn"
        assert told(f"{german} the with from this which these") == ""
        assert told(f"{german} the with from") == "de"

    @pytest.mark.parametrize(
        ("language", "word"), [("ar", "كتاب"), ("hi", "किताब"), ("ru", "город")]
    )
    def test_a_script_of_several_languages_is_taken_for_the_usual_one(
        self, language: str, word: str
    ) -> None:
        assert told(word) == language

    def test_a_text_that_is_half_in_an_unspaced_script_has_none(self) -> None:
        assert told("und nicht auch wird durch") == "de"
        assert told("und nicht auch wird durch 東京 大学 京都 大阪") == ""

    def test_names_in_other_letters_do_not_change_it(self) -> None:
        assert told("Сколько очков набрал Jared Allen в Carolina Panthers?") == "ru"
        assert told("Wie viele Sacks erzielte Jared Allen für die Carolina Panthers?") == "de"


class TestStems:
    @pytest.mark.parametrize(
        ("language", "one", "other"),
        [
            ("ar", "الكتاب", "كتاب"),
            ("cs", "města", "městu"),
            ("da", "husene", "huset"),
            ("de", "häuser", "haus"),
            ("el", "πόλεις", "πόλη"),
            ("es", "canciones", "canción"),
            ("et", "majad", "maja"),
            ("fa", "کتاب‌ها", "کتاب"),
            ("fi", "taloissa", "talosta"),
            ("fr", "maisons", "maison"),
            ("hi", "लड़कों", "लड़का"),
            ("hu", "házak", "házat"),
            ("id", "makanan", "makan"),
            ("it", "canzoni", "canzone"),
            ("lt", "namai", "namas"),
            ("nl", "boeken", "boek"),
            ("no", "husene", "huset"),
            ("pl", "domy", "domu"),
            ("pt", "casas", "casa"),
            ("ro", "orașele", "oraș"),
            ("ru", "городов", "город"),
            ("sv", "husen", "huset"),
            ("ta", "வீடுகள்", "வீடு"),
            ("tr", "evlerin", "evler"),
        ],
    )
    def test_forms_of_a_word_have_one_stem(self, language: str, one: str, other: str) -> None:
        assert language_stem(one, language) == language_stem(other, language) != ""

    def test_what_is_too_long_for_a_word_stays_as_it_is(self) -> None:
        long = "городов" * 5
        assert language_stem(long, "ru") == "~" + long
        assert language_stem(long[7:], "ru") == "~" + long[7:-2]

    def test_words_of_an_unspaced_script_have_none(self) -> None:
        *_, stems = chunk_terms("", "", f"{GERMAN} 東京大学 東京").body
        assert stems == chunk_terms("", "", GERMAN).body[-1]

    def test_a_text_is_indexed_by_its_words_and_by_its_stems(self) -> None:
        terms = chunk_terms("Bericht", "Häuser", GERMAN)
        assert list(terms.title) == [["bericht"], [], ["~bericht"]]
        assert list(terms.heading) == [["hauser"], ["häuser"], ["~haus"]]
        words, _, stems = terms.body
        assert words == index_terms(GERMAN)[0]
        assert stems == ["~stadt", "~steht", "~haus", "~sehr", "~alt", "~gart"]

    @pytest.mark.parametrize("text", ["The houses are very old.", "def main(): pass", "東京大学"])
    def test_nothing_is_added_to_english_code_and_unspaced_scripts(self, text: str) -> None:
        assert list(chunk_terms("", "", text).body) == index_terms(text)

    def test_function_words_count_less_than_others_or_not_at_all(self) -> None:
        wanted = wanted_lookups(parse_query("Wie viele Häuser ist die Stadt?"))
        weights = {group[0].term: len(group) for group in wanted}
        assert weights == {"~viel": 1, "hauser": 4, "stadt": 3}
        assert wanted[1] == tuple(map(Lookup, ("hauser", "häuser", "~haus", "~haus")))
        wanted = wanted_lookups(parse_query("Có bao nhiêu ngôi nhà trong thành phố?"))
        weights = {group[0].term: len(group) for group in wanted}
        assert weights["co"] == weights["trong"] == 1
        assert weights["thanh"] == weights["pho"] == 2

    def test_in_english_nothing_is_different(self) -> None:
        asked = parse_query("How many houses are in the old town?")
        assert asked.language == ""
        assert wanted_lookups(asked) == wanted_lookups(Query(terms=asked.terms))

    def test_a_quotation_is_looked_for_as_it_is_written(self) -> None:
        asked = parse_query('"die Häuser der Stadt"')
        assert asked.phrases == (("die", "häuser", "der", "stadt"),)

    def test_forms_of_the_words_are_marked_but_not_function_words(self) -> None:
        places = matches(GERMAN, parse_query("Wie viele Häuser ist die Stadt?"))
        assert [GERMAN[start:end] for start, end, _ in places] == ["Stadt", "Haus"]

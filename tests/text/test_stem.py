"""Our stems are those of FTS5's `porter` tokenizer, by which the ranking was measured."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zibaldone.store.sqlite.match import TOKENIZER
from zibaldone.text.stem import stem
from zibaldone.text.words import fold_case, forms, lexemes

ENDINGS = tuple(
    """s es ies ed eed ing ings at bl iz ly logy logi bly bli ably ational tional enci anci izer
    alli entli eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti icate
    ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion ou ism ate
    iti ous ive ize e ll y""".split()  # noqa: SIM905
)
BARE_ENDINGS = frozenset(("sses", "ies", "eed", "eeds"))
"""No words. FTS5 leaves them and we do not, or the other way round."""


def fts5_stems(words: Sequence[str]) -> list[str]:
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(
            f'CREATE VIRTUAL TABLE texts USING fts5(body, tokenize = "porter {TOKENIZER}")'
        )
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)")
        with connection:
            connection.executemany(
                "INSERT INTO texts (rowid, body) VALUES (?, ?)", enumerate(words)
            )
        return [term for (term,) in connection.execute("SELECT term FROM terms ORDER BY doc")]
    finally:
        connection.close()


def library_words() -> list[str]:
    """Words and identifiers of the standard library: some ten thousand, most of them English."""
    folder = Path(sysconfig.get_path("stdlib"))
    terms: set[str] = set()
    for file in sorted(folder.glob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        for lexeme in set(lexemes(fold_case(text))):
            terms.update(forms(lexeme).parts, forms(lexeme).further)
    return sorted(terms)


def differences(words: Sequence[str]) -> list[tuple[str, str, str]]:
    return [
        (word, expected, stem(word))
        for word, expected in zip(words, fts5_stems(words), strict=True)
        if stem(word) != expected
    ]


def test_every_word_of_a_large_vocabulary_has_the_stem_that_fts5_gives_it() -> None:
    words = library_words()
    assert len(words) > 10_000
    assert differences(words) == []


def test_so_have_made_up_words_with_every_ending() -> None:
    chance = random.Random(8)
    words = {
        "".join(chance.choices("aeiouybcdfghjklmnpqrstvwxz1_-", k=chance.randint(1, 5)))
        + "".join(chance.choices(ENDINGS, k=chance.randint(0, 3)))
        for _ in range(60_000)
    }
    # Nobody writes a doubled y either; we treat it as a vowel.
    made = sorted(word for word in words - BARE_ENDINGS if "yy" not in word)
    assert differences(made) == []


@given(st.lists(st.text(alphabet="abcdeilnorstzgm_1", min_size=1, max_size=14), max_size=30))
@example(["relational", "hopping", "agreed", "generalizations", "skies", "yes", "ses", "as"])
@example(["technology", "technologies", "geology", "ideologie", "possibly", "bubbly", "assembly"])
@example(["trekked", "trekking", "acced", "falling", "hissing", "fizzed", "x" * 64 + "s"])
@settings(max_examples=300)
def test_so_has_any_text(words: list[str]) -> None:
    assert differences([word for word in words if word not in BARE_ENDINGS]) == []


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [("việts", "việt"), ("größe", "größe"), ("naïves", "naïv"), ("us", "us"), ("東京", "東京")],
)
def test_words_beyond_ascii_lose_english_endings_only(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


def test_threads_do_not_disturb_one_another() -> None:
    words = library_words()[:4_000]
    expected = fts5_stems(words)
    stem.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: list(map(stem, words)), range(8)))
    assert all(stems == expected for stems in results)

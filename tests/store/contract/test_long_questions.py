"""Of a question with more words than are looked up, the rarest words count, wherever they stand."""

from __future__ import annotations

from tests.store.kept import Kept
from zibaldone.find.candidates import ranked_by_words
from zibaldone.find.documents import search_documents
from zibaldone.find.rarest import rarest, with_rarest
from zibaldone.limits import QUERY_TERMS_MAX
from zibaldone.model.query import NO_FILTER
from zibaldone.store.port import Reader
from zibaldone.text.query import parse_query

COMMON = [f"plain{nth}" for nth in range(QUERY_TERMS_MAX + 20)]
UNKNOWN = [f"nowhere{nth}" for nth in range(QUERY_TERMS_MAX)]


def fill(kept: Kept) -> None:
    for nth in range(6):
        kept.create(f"common/{nth}", " ".join(COMMON))
    kept.create("telling", "An ostrich lives here.")


def found(kept: Kept, question: str) -> tuple[list[str], list[str]]:
    """Documents found by the search for documents, and by the keyword search."""
    query = parse_query(question)

    def search(reader: Reader) -> tuple[list[str], list[str]]:
        hits = search_documents(reader, query, NO_FILTER, None, limit=9).hits
        page = ranked_by_words(reader, query, NO_FILTER, limit=9).page
        views = reader.chunks.views(key for key, _ in page)
        by_words = [views[key].document_id for key, _ in page]
        return [hit.chunks[0].document_id for hit in hits], by_words

    return kept.read(search)


def test_a_long_question_whose_telling_word_comes_last_finds_its_document(kept: Kept) -> None:
    fill(kept)
    question = " ".join([*COMMON, "ostrich"])
    assert parse_query(question).terms == tuple(COMMON[:QUERY_TERMS_MAX])
    assert all("telling" in documents for documents in found(kept, question))
    terms = kept.read(lambda reader: with_rarest(reader, parse_query(question)).terms)
    assert terms == (*COMMON[: QUERY_TERMS_MAX - 1], "ostrich")


def test_words_that_are_nowhere_take_no_place(kept: Kept) -> None:
    fill(kept)
    question = " ".join([*UNKNOWN, *COMMON[:8], "ostriches"])
    assert [documents[0] for documents in found(kept, question)] == ["telling", "telling"]


def test_of_words_that_are_all_common_the_rarest_count(kept: Kept) -> None:
    for nth in range(40):
        kept.create(f"common/{nth}", " ".join([*COMMON, *(["heron"] if nth < 35 else [])]))
    question = " ".join([*COMMON, "heron"])
    terms = kept.read(lambda reader: with_rarest(reader, parse_query(question)).terms)
    assert terms == (*COMMON[: QUERY_TERMS_MAX - 1], "heron")


def test_counts_tell_rare_words_from_common_ones(kept: Kept) -> None:
    fill(kept)
    words = ["plain1", "ostriches", "nowhere1", "plain2-ostrich"]
    counts = kept.read(lambda reader: reader.lexical.chunk_counts(words, count_max=100))
    assert counts == [6, 1, 0, 1]
    few = kept.read(lambda reader: reader.lexical.chunk_counts(words[:2], count_max=2))
    assert few[0] > 2
    assert few[1] == 1


def test_the_rarest_are_kept_in_their_order() -> None:
    counts = {"a": 5, "b": 1, "c": 0, "d": 5, "e": 3}
    assert rarest(list(counts), counts, 3) == ("a", "b", "e")
    assert rarest(list(counts), counts, 5) == tuple(counts)

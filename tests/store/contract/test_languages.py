"""Questions in other languages: forms of words are found, and function words do not lead."""

# ruff: noqa: RUF001 (other scripts have letters that look like ours)
from __future__ import annotations

from tests.store.kept import Kept
from zibaldone.find.documents import search_documents
from zibaldone.model.query import NO_FILTER
from zibaldone.text.query import parse_query


def found(kept: Kept, question: str) -> list[str]:
    query = parse_query(question)
    hits = kept.read(lambda r: search_documents(r, query, NO_FILTER, None, limit=9).hits)
    return [hit.chunks[0].document_id for hit in hits]


def fill(kept: Kept) -> None:
    for nth in range(8):
        kept.create(f"en/{nth}", f"The town number {nth} has a market and an old school.")


def test_one_form_of_a_german_word_finds_the_other(kept: Kept) -> None:
    fill(kept)
    kept.create("one", "Das Haus ist sehr alt, und es steht nicht mehr am Fluss.")
    kept.create("several", "Die Häuser sind sehr alt, und sie stehen nicht mehr am See.")
    kept.create("neither", "Wie viele es sind, das ist nicht bekannt. Es ist auch nicht wichtig.")
    assert set(found(kept, "Wie viele Häuser ist das?")[:2]) == {"one", "several"}
    assert set(found(kept, "Was ist mit dem Haus?")[:2]) == {"one", "several"}


def test_forms_are_found_in_other_scripts(kept: Kept) -> None:
    fill(kept)
    kept.create("ru", "Этот город стоит на берегу реки, и в нём есть старая школа.")
    kept.create("ar", "هذا الكتاب قديم جدا وهو في المكتبة.")
    kept.create("el", "Οι πόλεις της χώρας είναι πολύ παλιές και έχουν τείχη.")
    assert found(kept, "городами") == ["ru"]
    assert found(kept, "أين كتاب المدرسة؟") == ["ar"]
    assert found(kept, "ποια πόλη είναι παλιά;")[0] == "el"


def test_function_words_of_a_language_do_not_lead(kept: Kept) -> None:
    """Among English texts they are the rarest words of the question."""
    fill(kept)
    kept.create("de/right", "Die Zebras leben in der Steppe und trinken Wasser.")
    kept.create("de/wrong", "Bis wann ist das? Wie ist es bis jetzt, und wo ist es? Bis bald.")
    assert found(kept, "Bis wann ist das Zebra wo?")[0] == "de/right"
    kept.create("vi/right", "Ngựa vằn sống ở thảo nguyên.")
    kept.create("vi/wrong", "Có bao nhiêu? Có thể là như vậy, và nó có là của tôi không?")
    assert found(kept, "Có bao nhiêu con ngựa vằn là của nó?")[0] == "vi/right"


def test_function_words_alone_are_still_looked_for(kept: Kept) -> None:
    fill(kept)
    kept.create("de", "Wie ist das und wo ist es? Es ist nicht hier.")
    assert found(kept, "wie ist das und wo ist es") == ["de"]


def test_words_of_a_quotation_stand_as_they_are_written(kept: Kept) -> None:
    kept.create("one", "Das alte Haus ist nicht mehr da, und es war sehr schön.")
    kept.create("several", "Die alten Häuser sind nicht mehr da, und sie waren sehr schön.")
    assert found(kept, '"alte Haus"') == ["one"]
    assert set(found(kept, "Wo ist das alte Haus und der Garten?")) == {"one", "several"}

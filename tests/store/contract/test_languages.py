"""Questions in other languages: forms of words are found, and function words do not lead."""

# ruff: noqa: RUF001 (other scripts have letters that look like ours)
from __future__ import annotations

import asyncio

import pytest

from tests.store.kept import Kept
from tests.store.postgres.keywords import post_all
from zibaldone.find.documents import search_documents
from zibaldone.index.renewal import renew_terms
from zibaldone.model.query import NO_FILTER
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.store.upkeep import Upkeep
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
    kept.create("de/right", "Die Bäume stehen in der Steppe und brauchen Wasser.")
    kept.create("de/wrong", "Bis wann ist das? Wie ist es bis jetzt, und wo ist es? Bis bald.")
    assert found(kept, "Bis wann ist der Baum wo?")[0] == "de/right"
    kept.create("vi/right", "Ngựa vằn sống ở thảo nguyên.")
    kept.create("vi/wrong", "Cái này là của ai? Nó không ở đây.")
    assert found(kept, "Ngựa vằn là của ai?")[0] == "vi/right"


def test_function_words_alone_are_still_looked_for(kept: Kept) -> None:
    fill(kept)
    kept.create("de", "Wie ist das und wo ist es? Es ist nicht hier.")
    assert found(kept, "wie ist das und wo ist es") == ["de"]


def test_words_of_a_quotation_stand_as_they_are_written(kept: Kept) -> None:
    kept.create("one", "Das alte Haus ist nicht mehr da, und es war sehr schön.")
    kept.create("several", "Die alten Häuser sind nicht mehr da, und sie waren sehr schön.")
    assert found(kept, '"alte Haus"') == ["one"]
    assert set(found(kept, "Wo ist das alte Haus und der Garten?")) == {"one", "several"}


NEXT_VERSION = 7
"""A store that was empty at first has the terms of all versions before."""


def settle(kept: Kept) -> None:
    """What the engine does in the background is done."""
    if isinstance(kept.store, PostgresStore):
        post_all(kept.store)


def made_before(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents whose terms were made when every text was stemmed as English."""
    monkeypatch.setattr("zibaldone.index.renewal.TERMS_VERSION", NEXT_VERSION)
    with monkeypatch.context() as before:
        before.setattr("zibaldone.text.terms.language_of", lambda words: "")
        fill(kept)
        kept.create("several", "Die Häuser sind sehr alt, und sie stehen nicht mehr am See.")
        kept.create("changed", "Die Städte sind alt, und sie sind nicht mehr am See.", title="See")
        kept.create("gone", "Die Häuser gibt es nicht mehr, und sie waren auch nicht schön.")
        settle(kept)


def test_an_older_index_answers_and_is_brought_up_to_date(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_before(kept, monkeypatch)
    monkeypatch.setattr("zibaldone.index.renewal.RENEWAL_CHUNKS", 3)
    assert set(found(kept, "Wie viele Häuser gibt es?")) == {"several", "gone"}
    assert found(kept, "Wo ist das Haus?") == []
    kept.delete("gone")
    asyncio.run(renew_terms(kept.store))
    kept.create("later", "Das Haus ist nicht mehr da, und es war auch nicht schön.")
    settle(kept)
    assert found(kept, "Was ist mit dem Haus?")[0] == "later"
    assert set(found(kept, "Was ist mit dem Haus?")) == {"later", "several"}
    assert found(kept, "Wo ist die Stadt?")[0] == "changed"
    assert found(kept, "old school market") == [f"en/{nth}" for nth in range(8)]
    kept.update("several", body="Die Gärten sind sehr groß, und sie sind nicht mehr am See.")
    assert found(kept, "Wo ist das Haus?") == ["later"]
    assert asyncio.run(kept.store.check(thorough=True)).problems == ()
    progress = kept.upkeep(lambda work: work.terms.progress())
    assert (progress.version, progress.through) == (NEXT_VERSION, None)


def test_renewing_goes_on_where_it_ended_and_one_process_gets_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_before(kept, monkeypatch)
    kept.upkeep(lambda work: work.terms.begin(NEXT_VERSION))
    begun = kept.upkeep(lambda work: work.terms.progress())
    (first, *_) = kept.upkeep(lambda work: work.terms.page(0, begun.last, 1))

    def put(work: Upkeep) -> bool:
        return work.terms.put({}, version=NEXT_VERSION, before=0, through=first.chunk_key)

    assert [kept.upkeep(put), kept.upkeep(put)] == [True, False]
    kept.upkeep(lambda work: work.terms.begin(NEXT_VERSION))
    assert kept.upkeep(lambda work: work.terms.progress()).through == first.chunk_key
    asyncio.run(renew_terms(kept.store))
    assert kept.upkeep(lambda work: work.terms.progress()).through is None

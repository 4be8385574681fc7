"""Sentences that join two entities, and which of them end earlier ones."""

from __future__ import annotations

import pytest

from zibaldone.limits import FACTS_MAX
from zibaldone.model.instant import from_iso
from zibaldone.model.memory import Fact
from zibaldone.text.entities import entities_in
from zibaldone.text.facts import facts_in

AT_US = from_iso("2026-11-18")


def facts(text: str, *, is_message: bool = False) -> list[Fact]:
    entities = entities_in(text, speakers=is_message)
    return facts_in(text, entities, AT_US, is_message=is_message)


def test_a_sentence_with_two_entities() -> None:
    (fact,) = facts("Nothing here. Ada wrote to Grace Hopper about it. The end.")
    assert (fact.subject, fact.relation, fact.object) == ("ada", "wrote to", "grace hopper")
    assert fact.text == "Ada wrote to Grace Hopper about it."
    assert (fact.valid_at_us, fact.slot) == (AT_US, "")


def test_who_speaks_is_the_subject() -> None:
    (fact,) = facts("Ann: I moved to Oslo yesterday. Nice!", is_message=True)
    assert (fact.subject, fact.slot, fact.object) == ("ann", "lives in", "oslo")
    assert fact.valid_at_us == from_iso("2026-11-17")


@pytest.mark.parametrize(
    ("text", "slot", "object_"),
    [
        ("Ada lives in Oslo.", "lives in", "oslo"),
        ("Ada moved to Rome.", "lives in", "rome"),
        ("Ada works for Acme.", "works at", "acme"),
        ("Ada no longer works for Acme.", "works at", "not acme"),
        ("The Website runs on Kubernetes.", "runs on", "kubernetes"),
        ("Ada's manager is Grace Hopper.", "its manager", "grace hopper"),
        ("Project Apollo's deadline is 3 May.", "its deadline", "3 may"),
    ],
)
def test_what_can_be_true_only_once(text: str, slot: str, object_: str) -> None:
    (fact,) = facts(text)
    assert (fact.slot, fact.object) == (slot, object_)


def test_one_entity_is_no_fact() -> None:
    assert facts("Ada went home. It was late.") == []


def test_there_is_an_end_to_it() -> None:
    assert len(facts("Ada wrote to Grace. " * 1_000)) == FACTS_MAX

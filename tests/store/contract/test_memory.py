"""Episodes, what they mention and state, and what ended it: the same on every engine."""

from __future__ import annotations

import time
import tracemalloc
from functools import partial
from random import Random
from string import ascii_letters

import pytest

from tests.store.kept import ACTOR, Kept
from zibaldone.access.principal import Tenant
from zibaldone.find.memory import names_in
from zibaldone.keep import episodes
from zibaldone.limits import FACTS_MAX, MEMORY_LABELS_MAX
from zibaldone.model.document import Document
from zibaldone.model.memory import Entity, Episode, Fact, node_id
from zibaldone.store.port import Reader, Writer

MINE, OTHER = Tenant(), Tenant("other")
DAY_US = 86_400_000_000


def put(kept: Kept, name: str, day: int, *facts: Fact, tenant: Tenant = MINE) -> str:
    """An episode of the group g with these facts, and with what they are about."""
    document = kept.create(f"memory/g/{name}", "text", tenant)
    keys = dict.fromkeys(key for fact in facts for key in (fact.subject, fact.object))
    entities = [Entity(key, key.title(), "Name") for key in keys]
    episode = Episode("g", name, day * DAY_US, entities, facts)
    kept.write(lambda writer: writer.memory.put(document, episode), tenant)
    return document.document_id


def _put(writer: Writer, document: Document, episode: Episode) -> None:
    writer.memory.put(document, episode)


def fact(subject: str, object_: str, day: int, slot: str = "") -> Fact:
    return Fact(subject, "is", object_, f"{subject} is {object_}.", day * DAY_US, slot)


def test_episodes_are_listed_by_their_own_time(kept: Kept) -> None:
    for name, day in (("b", 2), ("c", 3), ("a", 1), ("c2", 3)):
        put(kept, name, day)
    latest = kept.read(lambda r: r.memory.latest(["g", "none"], limit=3))
    assert [head.episode_id for head in latest] == ["c2", "c", "b"]
    until = kept.read(lambda r: r.memory.latest(["g"], limit=9, until_us=2 * DAY_US))
    assert [head.episode_id for head in until] == ["b", "a"]
    assert kept.read(lambda r: r.memory.groups()) == {"g": 4}
    (head,) = kept.read(lambda r: r.memory.find("b", limit=9))
    assert (head.document_id, head.group_id, head.valid_at_us) == ("memory/g/b", "g", 2 * DAY_US)


def test_of_very_many_groups_the_largest_are_listed(kept: Kept) -> None:
    sizes = {"b": 1, "a": 3, "d": 2, "c": 2}
    for group, size in sizes.items():
        for number in range(size):
            document = kept.create(f"memory/{group}/{number}", "text", MINE)
            kept.write(partial(_put, document=document, episode=Episode(group, str(number), 1)))
    for prefix, expected in (("", {"a": 3, "c": 2}), ("memory/", {"a": 3, "c": 2}), ("x/", {})):
        tenant = Tenant(prefix=prefix)
        shown = kept.read(lambda r: r.memory.groups(limit=2), tenant)
        assert list(shown.items()) == sorted(expected.items())
        totals = kept.read(lambda r: r.memory.totals(), tenant)
        assert totals == ((4, 8) if expected else (0, 0))
    everything = kept.read(lambda r: r.memory.groups(), MINE)
    assert list(everything.items()) == sorted(sizes.items())


def test_neighbours_are_two_each_way_in_the_order_of_time(kept: Kept) -> None:
    for name, day in (("e", 5), ("a", 1), ("d", 4), ("b", 2), ("c", 3)):
        put(kept, name, day)
    around = kept.read(lambda r: r.memory.around(["memory/g/c", "memory/g/a", "memory/g/none"]))
    assert set(around) == {"memory/g/c", "memory/g/a"}
    assert around["memory/g/c"].before == ("memory/g/b", "memory/g/a")
    assert around["memory/g/c"].after == ("memory/g/d", "memory/g/e")
    assert around["memory/g/a"].before == ()
    assert around["memory/g/a"].after == ("memory/g/b", "memory/g/c")


def test_a_later_fact_ends_the_one_in_its_slot(kept: Kept) -> None:
    oslo = put(kept, "1", 1, fact("ada", "oslo", 1, "lives in"))
    rome = put(kept, "2", 5, fact("ada", "rome", 5, "lives in"))
    again = put(kept, "3", 6, fact("ada", "rome", 6, "lives in"))
    put(kept, "4", 7, fact("bob", "paris", 7, "lives in"), fact("ada", "bob", 7))
    first, second, third = kept.read(lambda r: r.memory.facts_of([oslo, rome, again]))
    assert (first.invalid_at_us, first.replaced_by) == (5 * DAY_US, "ada is rome.")
    assert first.replaced_in == rome
    assert (second.invalid_at_us, third.invalid_at_us) == (None, None)
    (then,) = kept.read(lambda r: r.memory.facts_of([oslo, rome], until_us=4 * DAY_US))
    assert (then.fact.object, then.invalid_at_us) == ("oslo", None)
    kept.delete("memory/g/2")
    kept.delete("memory/g/3")
    (only,) = kept.read(lambda r: r.memory.facts_of([oslo, rome, again]))
    assert only.invalid_at_us is None


def test_one_episode_can_end_its_own_fact(kept: Kept) -> None:
    document = put(
        kept, "1", 1, fact("ada", "oslo", 1, "lives in"), fact("ada", "rome", 1, "lives in")
    )
    first, second = kept.read(lambda r: r.memory.facts_of([document]))
    assert (first.replaced_by, second.replaced_by) == ("ada is rome.", None)


def test_a_value_that_comes_back_is_ended_again(kept: Kept) -> None:
    cities = ("oslo", "oslo", "rome", "oslo", "oslo", "paris")
    told = [
        put(kept, str(day), day, fact("ada", city, day, "lives in"))
        for day, city in enumerate(cities)
    ]
    facts = kept.read(lambda r: r.memory.facts_of(told))
    ends = [None if one.invalid_at_us is None else one.invalid_at_us // DAY_US for one in facts]
    assert ends == [2, 2, 3, 5, 5, None]
    (alone,) = kept.read(lambda r: r.memory.facts_of(told[4:5]))
    assert (alone.replaced_by, alone.replaced_in) == ("ada is paris.", told[5])
    apart = kept.read(lambda r: r.memory.facts_of([told[0], told[3]]))  # what is between them too
    assert [one.replaced_in for one in apart] == [told[2], told[5]]


def test_facts_that_repeat_one_another_take_no_square_of_time(kept: Kept) -> None:
    same = [fact("ada", "oslo", 1, "lives in")] * FACTS_MAX
    told = [put(kept, str(number), 1, *same) for number in range(20)]

    def measured(reader: Reader) -> tuple[int, float]:
        started_s = time.thread_time()
        facts = reader.memory.facts_of(told)
        return len(facts), time.thread_time() - started_s

    count, cpu_s = kept.read(measured)
    assert count == 20 * FACTS_MAX
    assert cpu_s < 1.0  # of the embedded engine, which works in this thread, it was four or more


def test_what_a_slot_has_become_since_is_not_held_in_memory(kept: Kept) -> None:
    moving = [fact("ada", city, 2, "lives in") for city in ("oslo", "rome") * (FACTS_MAX // 2)]
    first = put(kept, "first", 1, fact("ada", "paris", 1, "lives in"))
    for number in range(10):
        put(kept, str(number), 2, *moving)

    def measured(reader: Reader) -> tuple[str | None, int]:
        reader.memory.facts_of([first])
        tracemalloc.start()
        try:
            (ended,) = reader.memory.facts_of([first])
            return ended.replaced_by, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    replaced_by, peak_bytes = kept.read(measured)
    assert replaced_by == "ada is oslo."
    assert peak_bytes < 200_000  # of two thousand facts; it was 700,000


def test_only_so_many_episodes_of_one_id_are_read(kept: Kept) -> None:
    for group in "ghi":
        document = kept.create(f"memory/{group}/same", "text", MINE)
        put_as = partial(_put, document=document, episode=Episode(group, "same", DAY_US))
        kept.write(put_as, MINE)
    assert len(kept.read(lambda r: r.memory.find("same", limit=2))) == 2
    assert len(kept.read(lambda r: r.memory.find("same", limit=9))) == 3


def test_an_episode_with_many_facts_hides_no_other(kept: Kept) -> None:
    first = put(kept, "1", 1, fact("ada", "oslo", 1))
    many = [fact("ada", f"city {number}", 2) for number in range(FACTS_MAX)]
    second = put(kept, "2", 2, *many)
    assert kept.read(lambda r: r.memory.stating("g", "ada", limit=2)) == [second, first]


def test_nodes_are_what_episodes_mention(kept: Kept) -> None:
    put(kept, "1", 3, fact("ada", "oslo", 3))
    put(kept, "2", 5, fact("ada", "rome", 5))
    nodes = kept.read(lambda r: r.memory.nodes("g", ["rome", "none", "ada", "ada"]))
    assert [(node.key, node.name, node.episodes) for node in nodes] == [
        ("rome", "Rome", 1),
        ("ada", "Ada", 2),
    ]
    assert nodes[1].since_us == 3 * DAY_US
    assert nodes[1].node_id == node_id("g", "ada")
    early = kept.read(lambda r: r.memory.nodes("g", ["rome", "ada"], until_us=4 * DAY_US))
    assert [(node.key, node.episodes) for node in early] == [("ada", 1)]
    mentioned = kept.read(lambda r: r.memory.entities_of(["memory/g/2", "memory/g/1"]))
    assert [one.key for one in mentioned["memory/g/1"]] == ["ada", "oslo"]
    stating = kept.read(lambda r: r.memory.stating("g", "ada", limit=9))
    assert stating == ["memory/g/2", "memory/g/1"]
    assert kept.read(lambda r: r.memory.stating("g", "rome", limit=9)) == []


def test_writing_again_replaces_what_was_said(kept: Kept) -> None:
    document_id = put(kept, "1", 3, fact("ada", "oslo", 3), fact("ada", "rome", 3))
    document = kept.known(document_id)
    kept.write(lambda w: w.memory.put(document, Episode("g", "1", DAY_US)))
    assert kept.read(lambda r: r.memory.facts_of([document_id])) == []
    assert kept.read(lambda r: r.memory.entities_of([document_id])) == {}
    assert kept.read(lambda r: r.memory.find("1", limit=9))[0].valid_at_us == DAY_US


def test_another_namespace_or_folder_sees_nothing(kept: Kept) -> None:
    mine = put(kept, "1", 1, fact("ada", "oslo", 1, "lives in"))
    put(kept, "2", 2, fact("ada", "rome", 2, "lives in"), tenant=OTHER)
    folder = Tenant(prefix="memory/h/")
    (only,) = kept.read(lambda r: r.memory.facts_of([mine, "memory/g/2"]))
    assert only.invalid_at_us is None  # the other one's fact ends nothing here
    for tenant in (OTHER, folder):
        assert kept.read(lambda r: r.memory.facts_of([mine]), tenant) == []
        assert kept.read(lambda r: r.memory.find("1", limit=9), tenant) == []
        assert kept.read(lambda r: r.memory.entities_of([mine]), tenant) == {}
        assert kept.read(lambda r: r.memory.around([mine]), tenant) == {}
        assert kept.read(lambda r: r.memory.nodes("g", ["oslo"]), tenant) == []
        assert mine not in kept.read(lambda r: r.memory.stating("g", "ada", limit=9), tenant)
        latest = kept.read(lambda r: r.memory.latest(["g"], limit=9), tenant)
        assert "1" not in [head.episode_id for head in latest]
    assert kept.read(lambda r: r.memory.groups(), folder) == {}
    assert kept.read(lambda r: r.memory.groups(), OTHER) == {"g": 1}


def test_what_is_ended_outside_of_a_folder_is_not_told(kept: Kept) -> None:
    inside = put(kept, "in/1", 1, fact("ada", "oslo", 1, "lives in"))
    put(kept, "out/1", 2, fact("ada", "rome", 2, "lives in"))
    folder = Tenant(prefix="memory/g/in/")
    (seen,) = kept.read(lambda r: r.memory.facts_of([inside]), folder)
    assert (seen.invalid_at_us, seen.replaced_by) == (None, None)
    assert kept.read(lambda r: r.memory.around([inside]), folder)[inside].after == ()


def test_a_name_that_cannot_be_stored_is_left_out(kept: Kept) -> None:
    """Front matter can spell NUL, which PostgreSQL has no text for."""
    body = '---\ntopics: ["a\\0b", "a\\0c", good]\n"of\\0x": bad\n---\ntext'
    document = kept.create("memory/g/nul", body)
    found = kept.read(lambda r: r.memory.entities_of([document.document_id]))
    assert [entity.name for entity in found[document.document_id]] == ["good"]
    assert kept.read(lambda r: r.memory.nodes("g", names_in("a\0b good")))[0].name == "good"


def test_a_speaker_with_a_name_of_pages_is_nobody(kept: Kept) -> None:
    """It was stored with each of its sentences, and PostgreSQL has no index for it."""
    name = "".join(Random(1).choices(ascii_letters, k=12_000))
    body = f"A{name}: I met Ada Lovelace.\n" + "We met Charles Babbage.\n" * 300
    document = kept.create("memory/g/speaker", body, metadata={"source": "message"})
    facts = kept.read(lambda r: r.memory.facts_of([document.document_id]))
    assert sum(len(stored.fact.text) for stored in facts) < len(body)


def test_labels_of_a_node_are_few(kept: Kept) -> None:
    for number in range(MEMORY_LABELS_MAX + 5):
        kept.create(f"memory/g/{number}", f"---\nlabel{number}: Ada\n---\ntext")
    (node,) = kept.read(lambda r: r.memory.nodes("g", ["ada"]))
    assert len(node.labels) == MEMORY_LABELS_MAX
    assert node.episodes == MEMORY_LABELS_MAX + 5


def test_deleting_a_group_takes_several_transactions(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "MEMORY_CLEAR_CHARS", 1_000)
    for number in range(3):
        kept.create(f"memory/g/{number}", "word " * 200)
    counts = [kept.write(lambda w: episodes.delete_in_groups(w, ["g"], ACTOR)) for _ in range(4)]
    assert counts == [1, 1, 1, 0]

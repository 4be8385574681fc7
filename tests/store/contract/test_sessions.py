"""Conversations with assistants: kept as they were, of one key, one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.consult import (
    Message,
    SentFile,
    Session,
    SessionKey,
    Spent,
    ToolCall,
    Usage,
)
from zibaldone.store.port import Reader, Writer

KEY = SessionKey("k1", "reviewer", "auth")
DAY = 20_000
MESSAGES = [
    Message("user", "files \u0000 \u2028 é", is_base=True),
    Message("user", "What is wrong?"),
    Message("assistant", "", (ToolCall("c1", "search_files", "{"),), opaque={"b": 1, "a": [1.0]}),
    Message("tool", "nothing", tool_call_id="c1"),
]
SENT = {"p/a.py": SentFile(3, 1_700_000_000_123_456_789), "p/é.py": SentFile(0, -5, "abc")}


def session(key: SessionKey = KEY, **more: Any) -> Session:
    values = {
        "turns": 1,
        "tokens": 90,
        "usage": Usage(100, 50, 7, 9),
        "saved_tokens": 2**40,
        "cost": 0.25,
        "state": {"z": 1, "a": [1.0, 2]},
        "created_at_us": 5,
        "updated_at_us": 6,
    }
    return Session(key, **{**values, **more})


def fill(kept: Kept, key: SessionKey = KEY, tenant: Tenant = EVERYTHING, **more: Any) -> None:
    def work(writer: Any) -> None:
        writer.sessions.put(session(key, **more))
        writer.sessions.put_messages(key, MESSAGES, 0)
        writer.sessions.put_stable(key, ["p/a.py", "p/é.py"], 6)
        writer.sessions.put_sent(key, SENT)
        writer.sessions.spend(key.owner, DAY, Spent(10, 0.5))

    kept.write(work, tenant)


def test_a_session_comes_back_as_it_was(kept: Kept) -> None:
    assert kept.read(lambda r: r.sessions.get(KEY)) is None
    fill(kept)
    stored = kept.read(lambda r: r.sessions.get(KEY))
    assert stored is not None
    assert replace(stored, storage_key=0) == session()
    assert list(stored.state) == ["z", "a"]
    assert kept.read(lambda r: r.sessions.messages(KEY)) == MESSAGES
    assert kept.read(lambda r: r.sessions.messages(KEY, 2)) == MESSAGES[2:]
    assert kept.read(lambda r: r.sessions.stable(KEY)) == ("p/a.py", "p/é.py")
    assert kept.read(lambda r: r.sessions.sent(KEY)) == SENT


def test_a_writer_sees_what_it_wrote(kept: Kept) -> None:
    def work(writer: Any) -> tuple[Any, ...]:
        writer.sessions.put(session(turns=4))
        writer.sessions.put_messages(KEY, MESSAGES, 0)
        writer.sessions.put_sent(KEY, SENT)
        found = writer.sessions.get(KEY)
        return found.turns, writer.sessions.messages(KEY), writer.sessions.sent(KEY)

    assert kept.write(work) == (4, MESSAGES, SENT)


def test_messages_are_appended_and_replaced(kept: Kept) -> None:
    fill(kept)
    more = [Message("assistant", "The end.")]
    kept.write(lambda w: w.sessions.put_messages(KEY, more, 4))
    assert kept.read(lambda r: r.sessions.messages(KEY)) == [*MESSAGES, *more]
    kept.write(lambda w: w.sessions.put_messages(KEY, more, 1))
    assert kept.read(lambda r: r.sessions.messages(KEY)) == [MESSAGES[0], *more]
    kept.write(lambda w: w.sessions.put_messages(KEY, [], 0))
    assert kept.read(lambda r: r.sessions.messages(KEY)) == []


def test_a_list_is_written_once_and_an_empty_one_is_a_list(kept: Kept) -> None:
    kept.write(lambda w: w.sessions.put(session()))
    assert kept.read(lambda r: r.sessions.stable(KEY)) is None
    kept.write(lambda w: w.sessions.put_stable(KEY, [], 6))
    assert kept.read(lambda r: r.sessions.stable(KEY)) == ()
    kept.write(lambda w: w.sessions.put_stable(KEY, ["p/b.py"], 7))
    assert kept.read(lambda r: r.sessions.stable(KEY)) == ()


def test_sent_files_are_changed_and_removed_one_by_one(kept: Kept) -> None:
    fill(kept)
    kept.write(lambda w: w.sessions.put_sent(KEY, {"p/a.py": SentFile(9, 9)}))
    kept.write(lambda w: w.sessions.remove_sent(KEY, ["p/é.py", "p/none.py"]))
    kept.write(lambda w: w.sessions.put_sent(KEY, {}))
    kept.write(lambda w: w.sessions.remove_sent(KEY, []))
    assert kept.read(lambda r: r.sessions.sent(KEY)) == {"p/a.py": SentFile(9, 9)}


@pytest.mark.requirement("SI-24", "SI-37")
def test_a_session_with_2000_files_takes_less_than_100_kb(kept: Kept, backend: Backend) -> None:
    """The list and what was sent, for paths as long as those of installed packages: 50 to 65."""
    paths = [
        f"site-packages/package_{n % 40:02}/resources/beta/threads_{n % 90:02}/module_{n:04}.py"
        for n in range(2_000)
    ]
    sent = {
        path: SentFile(3_000 + n, 1_763_000_000_123_456_789 + n) for n, path in enumerate(paths)
    }

    def work(writer: Writer) -> None:
        writer.sessions.put(session())
        writer.sessions.put_stable(KEY, paths, 6)
        writer.sessions.put_sent(KEY, sent)

    kept.write(work)
    assert kept.read(lambda r: r.sessions.sent(KEY)) == sent
    assert kept.read(lambda r: r.sessions.stable(KEY)) == tuple(paths)
    ((lists,),) = backend.query("SELECT sum(length(inline_paths)) FROM stable_inline_lists")
    ((folders,),) = backend.query("SELECT sum(length(sent_folders)) FROM consult_sessions")
    ((files,),) = backend.query("SELECT sum(length(file_path) + 16) FROM sent_files")
    assert lists < 50_000
    assert lists + folders + files < 100_000


def test_a_removed_session_leaves_nothing(kept: Kept, backend: Backend) -> None:
    other = replace(KEY, session_id="other")
    fill(kept)
    fill(kept, other)
    assert kept.write(lambda w: w.sessions.remove(KEY)) is True
    assert kept.write(lambda w: w.sessions.remove(KEY)) is False
    assert len(backend.query("SELECT 1 FROM sent_files")) == len(SENT), "those of the other"
    assert len(backend.query("SELECT 1 FROM consult_messages")) == len(MESSAGES)
    kept.write(lambda w: w.sessions.put(session()))
    assert kept.read(lambda r: r.sessions.messages(KEY)) == []
    assert kept.read(lambda r: r.sessions.stable(KEY)) is None
    assert kept.read(lambda r: r.sessions.sent(KEY)) == {}
    assert kept.read(lambda r: r.sessions.messages(other)) == MESSAGES
    assert kept.read(lambda r: r.sessions.sent(other)) == SENT


def test_the_session_used_last_is_listed_first(kept: Kept) -> None:
    for number in range(5):
        key = replace(KEY, session_id=f"s{number}", assistant="reviewer" if number else "claude")
        fill(kept, key, updated_at_us=number)
    kept.write(lambda w: w.sessions.put(session(updated_at_us=9, turns=0)))
    kept.write(lambda w: w.sessions.put(session(replace(KEY, owner="k2"), updated_at_us=8)))

    def ids(**more: Any) -> list[str]:
        page = kept.read(lambda r: r.sessions.page("k1", **more))
        return [listed.key.session_id for listed in page]

    assert ids(limit=9) == ["s4", "s3", "s2", "s1", "s0"]
    assert ids(limit=9, assistant="claude") == ["s0"]
    first = kept.read(lambda r: r.sessions.page("k1", limit=2))
    last = first[-1]
    assert ids(limit=2, before=(last.updated_at_us, last.storage_key)) == ["s2", "s1"]


LOOKS: dict[str, Callable[[Reader, SessionKey], Any]] = {
    "get": lambda r, key: r.sessions.get(key),
    "page": lambda r, key: r.sessions.page(key.owner, limit=9),
    "messages": lambda r, key: r.sessions.messages(key),
    "stable": lambda r, key: r.sessions.stable(key),
    "sent": lambda r, key: r.sessions.sent(key),
    "spent": lambda r, key: r.sessions.spent(key.owner, DAY).tokens,
}


@pytest.mark.parametrize("look", LOOKS)
def test_another_key_or_namespace_sees_nothing(kept: Kept, look: str) -> None:
    fill(kept)
    assert kept.read(lambda r: LOOKS[look](r, KEY))
    assert not kept.read(lambda r: LOOKS[look](r, KEY), Tenant("other"))
    assert not kept.read(lambda r: LOOKS[look](r, replace(KEY, owner="k2")))


def test_another_key_or_namespace_changes_nothing(kept: Kept) -> None:
    fill(kept)
    strangers = [(Tenant("other"), KEY), (Tenant(), replace(KEY, owner="k2"))]

    def meddle(writer: Any, key: SessionKey) -> bool:
        writer.sessions.put_messages(key, [], 0)
        writer.sessions.remove_sent(key, ["p/a.py"])
        writer.sessions.put_sent(key, {"x": SentFile(1, 1)})
        writer.sessions.spend(key.owner, DAY, Spent(5, 1.0))
        return bool(writer.sessions.remove(key))

    for tenant, key in strangers:
        assert kept.write(partial(meddle, key=key), tenant) is False
        fill(kept, key, tenant, turns=7)
    assert kept.read(lambda r: r.sessions.messages(KEY)) == MESSAGES
    assert kept.read(lambda r: r.sessions.sent(KEY)) == SENT
    stored = kept.read(lambda r: r.sessions.get(KEY))
    assert stored is not None
    assert stored.turns == 1
    assert kept.read(lambda r: r.sessions.spent("k1", DAY)) == Spent(10, 0.5)


def test_spending_adds_up_by_day(kept: Kept) -> None:
    kept.write(lambda w: w.sessions.spend("k1", DAY, Spent(10, 0.5)))
    total = kept.write(lambda w: w.sessions.spend("k1", DAY, Spent(5, 0.25)))
    assert total == Spent(15, 0.75)
    kept.write(lambda w: w.sessions.spend("k1", DAY + 1, Spent(1, 0.0)))
    assert kept.read(lambda r: r.sessions.spent("k1", DAY)) == Spent(15, 0.75)
    assert kept.read(lambda r: r.sessions.spent("k1", DAY + 1)) == Spent(1, 0.0)
    assert kept.read(lambda r: r.sessions.spent("k1", DAY + 2)) == Spent()


def test_no_turn_is_lost_between_two_that_opened_the_store(kept: Kept, backend: Backend) -> None:
    """The second waits, and then reads what the first wrote."""
    fill(kept, turns=0)
    other = backend.open(Limits())

    def count_up(writer: Writer) -> int:
        before = writer.sessions.get(KEY)
        assert before is not None
        writer.sessions.put(replace(before, turns=before.turns + 1))
        return before.turns

    async def both() -> list[int]:
        stores = [kept.store, other] * 20
        return await asyncio.gather(*(store.write(EVERYTHING, count_up) for store in stores))

    try:
        assert sorted(asyncio.run(both())) == list(range(40))
    finally:
        other.close()


def test_one_holder_at_a_time(kept: Kept) -> None:
    def lease(holder: str, now_us: int, until_us: int) -> bool:
        return kept.write(lambda w: w.sessions.lease(KEY, holder, now_us=now_us, until_us=until_us))

    assert lease("a", 100, 200)
    assert not lease("b", 150, 250)
    assert lease("a", 150, 250)
    assert kept.write(lambda w: w.sessions.holds(KEY, "a"))
    assert kept.read(lambda r: r.sessions.page("k1", limit=9)) == []
    kept.write(lambda w: w.sessions.release(KEY, "b"))
    assert not lease("b", 160, 260)
    kept.write(lambda w: w.sessions.release(KEY, "a"))
    assert lease("b", 160, 260)
    assert lease("c", 260, 360)
    assert not kept.write(lambda w: w.sessions.holds(KEY, "b"))


def test_a_lease_of_a_clock_far_ahead_counts_for_nothing(kept: Kept) -> None:
    kept.write(lambda w: w.sessions.lease(KEY, "a", now_us=10**9, until_us=10**9 + 100))
    assert kept.write(lambda w: w.sessions.lease(KEY, "b", now_us=100, until_us=200))


def test_a_lease_stays_while_the_session_is_stored(kept: Kept) -> None:
    kept.write(lambda w: w.sessions.lease(KEY, "a", now_us=100, until_us=200))
    fill(kept)
    assert kept.write(lambda w: w.sessions.holds(KEY, "a"))


def test_a_later_attempt_takes_the_lease_of_its_own_turn(kept: Kept) -> None:
    for holder, is_given in (("t1:a", True), ("t11:b", False), ("t1:b", True), ("t:c", False)):
        work = partial(lease, holder=holder)
        assert kept.write(work) is is_given
    assert not kept.write(lambda w: w.sessions.holds(KEY, "t1:a"))
    assert kept.write(lambda w: w.sessions.holds(KEY, "t1:b"))


def lease(writer: Writer, holder: str) -> bool:
    return writer.sessions.lease(KEY, holder, now_us=100, until_us=200)

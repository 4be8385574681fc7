"""Whose turn it is, on a clock that the tests turn."""

from __future__ import annotations

import asyncio

import pytest

from zibaldone.access.share import NO_CALLERS, SHARE
from zibaldone.access.turns import (
    LONG_SECONDS,
    REST_SECONDS_MAX,
    SMALL_SECONDS,
    TaskTurns,
    Turns,
)

NOW = 1_000.0
MUCH_LATER = NOW + 1_000.0


def served(turns: Turns[str], count: int, seconds: float = 0.001) -> list[str]:
    """So many turns one after the other, each of which takes this long."""
    order = []
    for _ in range(count):
        taken = turns.take(NOW)
        assert taken is not None
        order.append(taken[1])
        turns.give_back(taken[0], seconds, NOW)
    return order


def test_one_share_is_served_in_the_order_of_arrival() -> None:
    turns: Turns[str] = Turns(1)
    for item in ("a1", "a2", "a3"):
        turns.add("a", item)
    assert served(turns, 3) == ["a1", "a2", "a3"]
    assert turns.take(NOW) is None


def test_shares_take_turns_however_long_a_queue_is() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(16):
        turns.add("a", f"a{number}")
    turns.add("b", "b0")
    turns.add("b", "b1")
    assert served(turns, 5) == ["a0", "b0", "a1", "b1", "a2"]


def test_time_counts_not_the_number_of_turns() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(10):
        turns.add("a", f"a{number}")
        turns.add("b", f"b{number}")
    order = []
    for _ in range(11):
        taken = turns.take(NOW)
        assert taken is not None
        order.append(taken[0])
        turns.give_back(taken[0], 0.009 if taken[0] == "a" else 0.001, NOW)
    assert order.count("b") >= 8


def test_nobody_saves_up_time_while_away() -> None:
    turns: Turns[str] = Turns(1)
    turns.add("b", "b")
    served(turns, 1)
    for number in range(100):
        turns.add("a", f"a{number}")
    served(turns, 100)
    for number in range(4):
        turns.add("a", f"later a{number}")
        turns.add("b", f"later b{number}")
    assert {"later a0", "later a1", "later b0", "later b1"} <= {*served(turns, 5)}


def test_one_share_holds_some_of_the_places_only() -> None:
    turns: Turns[str] = Turns(4, per_share=3, beside_others=3)
    for number in range(6):
        turns.add("a", f"a{number}")
    assert [turns.take(NOW) for _ in range(4)] == [("a", "a0"), ("a", "a1"), ("a", "a2"), None]
    turns.add("b", "b0")
    turns.add("b", "b1")
    assert turns.take(NOW) == ("b", "b0")
    assert turns.take(NOW) is None


def test_fewer_while_others_are_about() -> None:
    turns: Turns[str] = Turns(4, per_share=3, beside_others=1)
    turns.add("b", "b")
    served(turns, 1)
    for number in range(6):
        turns.add("a", f"a{number}")
    assert turns.take(NOW) == ("a", "a0")
    assert turns.take(NOW) is None
    assert turns.take(MUCH_LATER) == ("a", "a1")


@pytest.mark.parametrize("share", NO_CALLERS)
def test_what_no_caller_asked_for_does_not_count_as_others(share: str) -> None:
    turns: Turns[str] = Turns(4, per_share=3, beside_others=1)
    turns.add(share, "upkeep")
    served(turns, 1)
    turns.add("a", "a0")
    turns.add("a", "a1")
    assert (turns.take(NOW), turns.take(NOW)) == (("a", "a0"), ("a", "a1"))


def test_extra_places_are_for_those_who_hold_none() -> None:
    turns: Turns[str] = Turns(2, per_share=2, beside_others=2, extra=2)
    for share in "abcde":
        for number in range(3):
            turns.add(share, f"{share}{number}")
    taken = [turns.take(NOW) for _ in range(5)]
    assert [item and item[0] for item in taken] == ["a", "b", "c", "d", None]
    turns.give_back("a", 1.0, NOW)
    assert turns.take(NOW) == ("e", "e0")


def test_who_leaves_the_queue_is_not_served() -> None:
    turns: Turns[str] = Turns(1)
    turns.add("a", "a0")
    turns.add("a", "a1")
    assert turns.discard("a", "a0")
    assert not turns.discard("a", "a0")
    assert not turns.discard("unknown", "a0")
    assert len(turns) == 1
    assert served(turns, 1) == ["a1"]


class TestRest:
    def resting(self) -> Turns[str]:
        """`a` has just worked for a tenth of a second, `b` for a moment."""
        turns: Turns[str] = Turns(1, rest_factor=4)
        turns.add("b", "b")
        served(turns, 1)
        turns.add("a", "long")
        served(turns, 1, seconds=0.1)
        turns.add("a", "next")
        return turns

    def test_after_long_work_others_have_the_place(self) -> None:
        turns = self.resting()
        assert turns.take(NOW + 0.39) is None
        assert turns.is_resting
        turns.add("b", "b")
        assert turns.take(NOW + 0.39) == ("b", "b")
        turns.give_back("b", 0.001, NOW + 0.39)
        assert turns.take(NOW + 0.41) == ("a", "next")
        assert not turns.is_resting

    def test_a_step_of_long_work_is_followed_by_a_rest_of_its_own(self) -> None:
        turns: Turns[str] = Turns(1, rest_factor=4, step_rest_factor=2)
        turns.add("b", "b")
        served(turns, 1)
        turns.add("a", "step", is_step=True)
        turns.take(NOW)
        turns.give_back("a", 0.02, NOW, worked_s=0.01, is_step=True)
        turns.add("a", "next step", is_step=True)
        assert turns.take(NOW + 0.019) is None
        assert turns.rest_ends_s == NOW + 0.02
        assert turns.take(NOW + 0.021) == ("a", "next step")
        assert turns.rest_ends_s is None

    def test_it_waits_for_no_other_rest_and_for_no_other_work_of_its_share(self) -> None:
        turns = self.resting()
        assert turns.take(NOW) is None
        turns.add("a", "step", is_step=True)
        assert len(turns) == 2
        assert turns.take(NOW) == ("a", "step")
        turns.add("a", "left", is_step=True)
        assert turns.discard("a", "left")
        assert not turns.discard("a", "left")

    def test_nobody_rests_alone(self) -> None:
        turns: Turns[str] = Turns(1, rest_factor=4)
        for number in range(3):
            turns.add("a", f"a{number}")
        assert served(turns, 3, seconds=10) == ["a0", "a1", "a2"]

    def test_nor_after_short_work(self) -> None:
        turns = self.resting()
        turns.add("b", "b0")
        turns.add("b", "b1")
        assert served(turns, 2, seconds=LONG_SECONDS / 2) == ["b0", "b1"]

    def test_the_others_go_and_the_rest_ends(self) -> None:
        turns: Turns[str] = Turns(1, rest_factor=1_000)
        turns.add("b", "b")
        served(turns, 1)
        turns.add("a", "long")
        served(turns, 1, seconds=100)
        turns.add("a", "next")
        assert turns.take(NOW + REST_SECONDS_MAX / 4) is None
        assert turns.take(NOW + REST_SECONDS_MAX / 2) == ("a", "next")

    def test_what_work_costs_after_its_end_lengthens_it(self) -> None:
        turns = self.resting()
        turns.charge("a", 0.1, NOW)
        assert turns.take(NOW + 0.79) is None

    def test_also_of_a_share_that_many_others_made_forgotten(self) -> None:
        turns: Turns[str] = Turns(1, rest_factor=4)
        for number in range(2_000):
            turns.add(f"other{number}", "short")
            served(turns, 1)
        turns.charge("other0", 0.1, NOW)
        turns.add("other0", "next")
        assert turns.take(NOW + 0.39) is None

    def several(self) -> Turns[str]:
        """`a` and `c` work for long; `a` has just done so, and both have more to do."""
        turns: Turns[str] = Turns(1, rest_factor=1, common_rest_factor=2)
        for name in "ca":
            turns.add(name, "long")
            served(turns, 1, seconds=0.1)
        turns.add("a", "next")
        turns.add("c", "next")
        return turns

    def test_several_with_long_work_do_not_take_turns_beside_a_short_one(self) -> None:
        turns = self.several()
        turns.add("b", "short")
        assert served(turns, 1, seconds=0.001) == ["short"]
        assert turns.take(NOW + 0.39) is None
        assert turns.is_resting
        assert turns.take(NOW + 0.41) == ("c", "next")

    def test_nor_does_one_who_may_have_long_work(self) -> None:
        turns = self.several()
        turns.add("b", "short")
        served(turns, 1, seconds=0.001)
        turns.add("new", "new")  # has used less time than b
        turns.add("b", "short")
        assert served(turns, 2) == ["short", "new"]

    def test_among_themselves_they_do(self) -> None:
        assert self.several().take(NOW + 0.11) == ("c", "next")


def test_long_work_is_not_taken_beside_others() -> None:
    turns: Turns[str] = Turns(1)
    turns.add("a", "long")
    served(turns, 1, seconds=SMALL_SECONDS * 2)
    turns.add("a", "next")
    assert turns.take(NOW, long_from={"b"}) is None
    assert turns.take(NOW, long_from={"a"}) == ("a", "next")


class TestTasks:
    async def use(
        self, turns: TaskTurns, share: str, order: list[str], until: asyncio.Event
    ) -> None:
        SHARE.set(share)
        async with turns:
            order.append(share)
            await until.wait()

    def test_tasks_wait_and_leave(self) -> None:
        async def run() -> list[str]:
            turns = TaskTurns(Turns(1, per_share=1, extra=1))
            order: list[str] = []
            over = asyncio.Event()
            tasks = [asyncio.create_task(self.use(turns, "a", order, over)) for _ in range(3)]
            await asyncio.sleep(0)
            tasks.append(asyncio.create_task(self.use(turns, "b", order, over)))
            await asyncio.sleep(0.01)
            assert order == ["a", "b"]
            tasks[1].cancel()  # it waits
            tasks[0].cancel()  # it holds the place
            await asyncio.sleep(0.01)
            assert order == ["a", "b", "a"]
            over.set()
            await asyncio.gather(*tasks, return_exceptions=True)
            async with turns:
                return order

        assert asyncio.run(run()) == ["a", "b", "a"]

    def test_who_gives_up_at_the_last_moment_gives_back_once(self) -> None:
        """Cancelled, and before its task runs the turn comes: there were more places then."""

        async def run() -> int:
            inner: Turns[asyncio.Future[None]] = Turns(1)
            turns = TaskTurns(inner)
            order: list[str] = []
            until = asyncio.Event()
            holding = asyncio.create_task(self.use(turns, "a", order, until))
            waiting = asyncio.create_task(self.use(turns, "a", order, until))
            await asyncio.sleep(0)
            until.set()  # the place is given back in the next step,
            waiting.cancel()  # in which this one's future is cancelled, and its task runs later
            await asyncio.gather(holding, waiting, return_exceptions=True)
            until.clear()
            tasks = [asyncio.create_task(self.use(turns, "a", order, until)) for _ in range(3)]
            await asyncio.sleep(0.01)
            began = len(order) - 1
            until.set()
            await asyncio.gather(*tasks)
            return began

        assert asyncio.run(run()) == 1

    def test_a_turn_that_is_held_ends_with_its_task(self) -> None:
        async def run() -> list[str]:
            turns = TaskTurns(Turns(1))
            order: list[str] = []
            over = asyncio.Event()

            async def hold(name: str, until: asyncio.Event) -> None:
                SHARE.set("a")
                await turns.hold()
                await turns.hold()  # it has it already
                order.append(name)
                await until.wait()
                if name == "failing":
                    raise ValueError(name)

            failing = asyncio.create_task(hold("failing", over))
            waiting = asyncio.create_task(hold("waiting", over))
            given_up = asyncio.create_task(hold("given up", over))
            last = asyncio.create_task(hold("last", over))
            await asyncio.sleep(0.01)
            assert order == ["failing"]
            given_up.cancel()
            over.set()
            await asyncio.gather(failing, waiting, given_up, last, return_exceptions=True)
            return order

        assert asyncio.run(run()) == ["failing", "waiting", "last"]

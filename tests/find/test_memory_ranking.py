"""Pieces of memory are ranked with what stands beside them."""

from __future__ import annotations

from dataclasses import replace

from zibaldone.find.memory_ranking import Piece, ranked

HOUR_US = 3_600_000_000


def order(*pieces: Piece, wanted: str, **more: object) -> list[int]:
    return [key for key, _ in ranked(pieces, wanted.split(), **more)]  # type: ignore[arg-type]


def filler(number: int) -> Piece:
    return Piece(number, ["rain", "walk", str(number)], number * 9 * HOUR_US)


FILLERS = [filler(number) for number in range(10, 20)]


def test_an_answer_beside_the_question_comes_before_a_stranger() -> None:
    question = Piece(1, ["where", "marathon"], 0, after=2)
    answer = Piece(2, ["in", "oslo"], 1, before=1)
    assert order(*FILLERS, question, answer, wanted="marathon")[:2] == [1, 2]


def test_a_word_that_most_have_says_nothing() -> None:
    common = [Piece(number, ["ann", "tea"], number * 9 * HOUR_US) for number in range(20, 40)]
    rare = Piece(1, ["ann", "violin"], 0)
    assert order(*common, rare, *FILLERS, wanted="ann violin")[0] == 1


def test_who_is_asked_about_speaks() -> None:
    ann = Piece(1, ["violin"], 0, speaker="ann")
    bob = Piece(2, ["violin"], -90 * HOUR_US, speaker="bob")
    assert order(*FILLERS, ann, bob, wanted="violin", named=frozenset({"bob"}))[0] == 2
    assert order(*FILLERS, ann, bob, wanted="violin", named=frozenset({"ann"}))[0] == 1


def test_who_of_two_that_are_named_speaks_says_nothing() -> None:
    ann = Piece(1, ["violin"], 0, speaker="ann")
    bob = Piece(2, ["violin"], -90 * HOUR_US, speaker="bob")
    carl = Piece(3, ["violin"], -180 * HOUR_US, speaker="carl")
    both = frozenset({"ann", "bob"})
    scores = dict(ranked([*FILLERS, ann, bob, carl], ["violin"], named=both))
    assert scores[1] == scores[2] == scores[3]


def test_messages_of_two_groups_at_one_time_are_no_conversation() -> None:
    """What another group said at the same moment is no evidence."""
    lone = Piece(1, ["violin"], 0, group=1)
    beside = Piece(2, ["violin", "violin"], 1, group=2)
    apart = replace(beside, at_us=-90 * HOUR_US)
    same, other = (dict(ranked([*FILLERS, lone, two], ["violin"]))[1] for two in (beside, apart))
    assert same == other
    together = dict(ranked([*FILLERS, lone, replace(beside, group=1)], ["violin"]))[1]
    assert together != same


def test_the_time_that_is_asked_for_comes_first() -> None:
    early = Piece(1, ["violin"], 0)
    late = Piece(2, ["violin"], -90 * HOUR_US, is_then=True)
    assert order(*FILLERS, early, late, wanted="violin")[0] == 2


def test_what_has_no_vector_is_judged_by_its_words() -> None:
    with_vector = Piece(1, ["violin"], 0, similarity=0.1)
    without = Piece(2, ["violin", "violin"], 90 * HOUR_US)
    near = Piece(3, ["cello"], 180 * HOUR_US, similarity=0.9)
    assert set(order(with_vector, without, near, wanted="violin")) == {1, 2, 3}


def test_nothing_is_no_trouble() -> None:
    assert ranked([], ["a"]) == []
    assert [key for key, _ in ranked([filler(1)], [])] == [1]


def test_what_asks_comes_behind_what_tells() -> None:
    asking = Piece(1, ["violin"], 0, is_asking=True, has_question=True)
    telling = Piece(2, ["violin"], -90 * HOUR_US)
    assert order(*FILLERS, asking, telling, wanted="violin")[:2] == [2, 1]


def test_what_follows_a_question_may_answer_it() -> None:
    remark, after_remark = Piece(1, ["tea"], 0, after=2), Piece(2, ["violin"], 1, before=1)
    question = Piece(3, ["tea"], 90 * HOUR_US, after=4, has_question=True)
    after_question = Piece(4, ["violin"], 90 * HOUR_US + 1, before=3)
    found = order(*FILLERS, remark, after_remark, question, after_question, wanted="violin")
    assert found[:2] == [4, 2]


def test_a_long_message_says_more_and_a_note_may_be_short() -> None:
    # Both hold the word once in each half: they are equally good by their words.
    short = Piece(1, ["violin"], 0, similarity=0.5)
    long = Piece(2, ["violin", *map(str, range(40))], 90 * HOUR_US, similarity=0.5)
    note = Piece(3, ["violin"], 180 * HOUR_US, similarity=0.5, session="note")
    found = dict(ranked([short, long, note], ["cello"]))
    assert found[3] == found[2] > found[1]


def test_several_answers_are_not_all_neighbours() -> None:
    talk = [
        Piece(number, ["violin"], number, before=number - 1, after=number + 1)
        for number in range(1, 6)
    ]
    apart = Piece(9, ["violin"], 90 * HOUR_US)
    pieces = (*FILLERS, *talk, apart)
    assert order(*pieces, wanted="violin")[5] == 9
    assert order(*pieces, wanted="violin", is_many=True)[3] == 9


def test_the_last_and_the_first_of_equal_ones() -> None:
    early, late = Piece(1, ["violin"], 0), Piece(2, ["violin"], 900 * HOUR_US)
    assert order(*FILLERS, early, late, wanted="violin", order="last")[0] == 2
    assert order(*FILLERS, late, early, wanted="violin", order="first")[0] == 1


def test_groups_share_no_session() -> None:
    strong, weak = Piece(1, ["violin", "bow"], 0), Piece(2, ["rain"], 1)
    together = dict(ranked([*FILLERS, strong, weak], ["violin", "bow"]))
    apart = dict(ranked([*FILLERS, strong, replace(weak, group=1)], ["violin", "bow"]))
    assert apart[2] < together[2]


def test_no_score_is_higher_than_the_one_before() -> None:
    talk = [
        Piece(number, ["violin"], number, before=number - 1, after=number + 1)
        for number in range(100, 130)
    ]
    scores = [score for _, score in ranked([*talk, *FILLERS], ["violin"], is_many=True)]
    assert scores == sorted(scores, reverse=True)

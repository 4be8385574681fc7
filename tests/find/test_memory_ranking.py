"""Pieces of memory are ranked with what stands beside them."""

from __future__ import annotations

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
    assert ranked([filler(1)], []) == [(1, 0.0)]

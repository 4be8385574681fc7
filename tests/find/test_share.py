"""How much the vectors decide, by the signs that a query and its candidates give."""

from __future__ import annotations

import inspect
import textwrap
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from zibaldone.find import share
from zibaldone.find.candidates import Candidates
from zibaldone.find.meaning import Meaning
from zibaldone.find.share import peak, share_of, vector_share
from zibaldone.store.port import Reader
from zibaldone.text import chunk, code_likeness, words
from zibaldone.text.code_likeness import code_likeness as likeness

PROSE = textwrap.dedent(share.__doc__ or "") * 3


def scores(*values: float) -> list[tuple[int, float]]:
    return list(enumerate(values))


def test_equal_scores_do_not_stand_out() -> None:
    assert peak(scores(*[4.0] * 100)) == pytest.approx(0.0)


def test_a_word_that_one_chunk_holds_stands_out() -> None:
    assert peak(scores(4.0)) == pytest.approx(0.95)


def test_a_leader_stands_out_from_the_field() -> None:
    field = [4.0] * 19
    assert peak(scores(4.0, *field)) < peak(scores(6.0, *field)) < peak(scores(12.0, *field))


def test_nothing_found_by_words_does_not_stand_out() -> None:
    assert peak([]) == 0.0


def test_words_that_single_out_a_chunk_decide_more() -> None:
    assert share_of(peak=0.9, code=0.0) < share_of(peak=0.5, code=0.0) < share_of(peak=0.1, code=0)


def test_vectors_decide_more_about_code() -> None:
    assert share_of(peak=0.3, code=1.0) > share_of(peak=0.3, code=0.3) > share_of(peak=0.3, code=0)


@pytest.mark.parametrize("stands_out", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("code", [0.0, 0.5, 1.0])
def test_both_legs_always_have_a_say(stands_out: float, code: float) -> None:
    assert 0.0 < share_of(stands_out, code) < 1.0


@pytest.mark.parametrize("module", [chunk, code_likeness, words])
def test_program_code_looks_like_code(module: object) -> None:
    functions = [value for value in vars(module).values() if inspect.isfunction(value)]
    sources = [inspect.getsource(function) for function in functions]
    assert sum(map(likeness, sources)) / len(sources) > 0.4


def test_prose_does_not() -> None:
    assert likeness(PROSE) < 0.1
    assert likeness("") == 0.0


def test_a_model_that_knows_the_language_less_decides_less() -> None:
    class NoChunks:
        def views(self, keys: object) -> dict[int, object]:
            return {}

    reader = cast("Reader", SimpleNamespace(chunks=NoChunks()))
    found = Candidates(scores(3.0, 2.0), scores(0.5), similarities={0: 0.5})

    def share_by(trust: float) -> float:
        meaning = Meaning("model", np.zeros((1, 2), np.float32), trust)
        return vector_share(reader, found, meaning)

    assert share_by(0.5) == pytest.approx(share_by(1.0) / 2)
    assert vector_share(reader, found, None) == 0.0


def test_what_either_leg_found_tells_whether_it_is_about_code() -> None:
    class Chunks:
        def __init__(self, *texts: str) -> None:
            self._texts = texts

        def views(self, keys: set[int]) -> dict[int, object]:
            return {key: SimpleNamespace(text=self._texts[key]) for key in keys}

    code = inspect.getsource(chunk.cut)
    meaning = Meaning("model", np.zeros((1, 2), np.float32))
    found = Candidates([(0, 3.0)], [(1, 0.5)], similarities={0: 0.5})

    def share_of_texts(*texts: str) -> float:
        return vector_share(cast("Reader", SimpleNamespace(chunks=Chunks(*texts))), found, meaning)

    neither = share_of_texts(PROSE, PROSE)
    assert share_of_texts(code, PROSE) > neither
    assert share_of_texts(PROSE, code) > neither
    assert share_of_texts(code, code) > share_of_texts(PROSE, code)

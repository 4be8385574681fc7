"""The short form of random_turns.py; its own form is 50 sessions of 30 turns."""

from __future__ import annotations

import pytest

from tests.pack.random_turns import run


@pytest.mark.requirement("SI-23", "SI-36")
def test_no_file_moves_and_the_assistant_has_every_file_as_it_is() -> None:
    assert run(8, 30) > 0

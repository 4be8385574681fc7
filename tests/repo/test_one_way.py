"""Things that only one place may do, because only there they are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "zibaldone"

ONLY_IN = {"unicodedata.normalize(": "text/normalize.py"}


@pytest.mark.parametrize("call", ONLY_IN)
def test_is_called_in_one_place(call: str) -> None:
    users = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if call in file.read_text(encoding="utf-8")
    ]
    assert users == [ONLY_IN[call]]

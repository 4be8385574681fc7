"""The reference names everything that a caller can meet."""

from __future__ import annotations

import re
from pathlib import Path

from zibaldone import errors

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
_CODE = re.compile(r"\b([A-Z]+(?:_[A-Z]+)*) +(?:\d{3}\b|the process)")


def test_every_code_of_the_tree_of_errors_is_in_the_reference() -> None:
    drawn = {*_CODE.findall(errors.__doc__ or "")}
    assert {"EMBEDDING_FAILED", "EMBEDDER_UNAVAILABLE", "CONFIGURATION"} <= drawn
    listed = {*re.findall(r"^\| `([A-Z_]+)` \|", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert drawn <= listed

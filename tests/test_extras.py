from __future__ import annotations

import json

import pytest

from zibaldone import extras
from zibaldone.errors import NotConfigured


def test_a_library_that_is_installed() -> None:
    assert extras.require("ingest", "json") is json


def test_a_library_that_is_not_installed() -> None:
    with pytest.raises(NotConfigured) as refusal:
        extras.require("ingest", "no_such_library.part")
    assert refusal.value.message == (
        "The library no_such_library.part is not installed. "
        "To install it: pip install 'zibaldone[ingest]'"
    )
    assert refusal.value.details == {
        "library": "no_such_library.part",
        "install": "pip install 'zibaldone[ingest]'",
    }


def test_missing_looks_without_importing() -> None:
    assert extras.missing(["json", "no_such_library"]) == ["no_such_library"]

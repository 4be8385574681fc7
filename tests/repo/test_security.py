"""SECURITY.md names every limit that can be set, and nothing that does not exist."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from zibaldone import errors, limits
from zibaldone.limits import Limits

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and "`" in line]
SETTINGS = {field.name for field in dataclasses.fields(Limits)}
QUOTED = re.compile(r"`([^`]+)`")
CODES = re.compile(r"\b(\d{3}) ([A-Z]+_[A-Z_]+)")


def test_every_limit_that_can_be_set_is_in_a_table() -> None:
    named = {name for row in ROWS for name in QUOTED.findall(row)}
    assert named >= SETTINGS


def test_every_limit_that_is_named_exists() -> None:
    names = {name for row in ROWS for name in QUOTED.findall(row)}
    fixed = {name for name in names if re.fullmatch("[A-Z][A-Z_]+", name)}
    assert fixed <= vars(limits).keys()
    ending = re.compile(r"[a-z_]+_(max|min|seconds)")
    assert {name for name in names if ending.fullmatch(name)} <= SETTINGS


def test_every_row_names_a_test_and_every_file_that_is_named_exists() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        assert "`tests/" in row, row
    paths = {name for name in QUOTED.findall(TEXT) if name.startswith(("tests/", "benchmarks/"))}
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_code_has_the_status_that_is_given() -> None:
    known = {
        value.code: value.status
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.ZibaldoneError)
    }
    given = CODES.findall(TEXT)
    assert given
    assert [(status, code) for status, code in given if known.get(code) != int(status)] == []

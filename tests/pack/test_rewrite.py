"""Messages only grow, so that a prompt cache serves them, until a rewrite pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pack.project import Project, Session, at, files_in
from zibaldone.pack.build import Packed
from zibaldone.pack.rewrite import rewrite_reason


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for number in range(10):
        project.words(f"{number}.txt", 400)
    return project


def is_appended(packed: Packed, before: Packed) -> bool:
    """Whether what was sent before is the beginning of what is sent now."""
    return packed.messages[: len(before.messages)] == before.messages


def test_every_turn_begins_with_the_one_before(project: Project) -> None:
    chat = Session(project.assistant())
    for number in range(5):
        project.words(f"{number}.txt", 300 + number)
        if number == 2:
            project.delete("9.txt")
        if number == 3:
            project.words("new.txt", 10)
        chat.turn(".", instructions=f"Question {number}?")
    for before, after in zip(chat.packed, chat.packed[1:], strict=False):
        assert not after.is_rewritten
        assert is_appended(after, before)
        assert len(after.breakpoints) <= 3
        assert after.breakpoints[-1] == len(after.messages) - 1


def test_when_half_of_the_files_text_is_out_of_date_it_is_written_anew(project: Project) -> None:
    chat = Session(project.assistant())
    chat.turn(".", instructions="First?")
    rewritten = None
    for turn in range(30):
        for number in range(3):
            project.words(f"{number}.txt", 300 + turn)
        packed = chat.turn(".", instructions=f"Question {turn}?")
        assert packed.state.superseded_tokens <= packed.state.base_tokens / 2
        if packed.is_rewritten:
            rewritten = packed
            break
        assert is_appended(packed, chat.packed[-2])
    assert rewritten is not None
    assert rewritten.rewrite_reason == "superseded"
    assert turn > 2
    base = files_in(rewritten.messages[0].text)
    assert base == {path.name: path.read_text() for path in project.root.iterdir()}
    # What changed last stands last: the next rewrite has a longer beginning in common.
    assert [*base][-3:] == ["0.txt", "1.txt", "2.txt"]
    said = [message.text for message in rewritten.messages if not message.is_base]
    assert said[0] == "First?\n"
    assert "at the beginning of the conversation" in rewritten.messages[-2].text
    assert rewritten.state.superseded_tokens == 0
    after = chat.turn(".")
    assert is_appended(after, rewritten)
    assert at(after, "unchanged") == {path.name for path in project.root.iterdir()}


def test_an_expired_cache_is_a_free_occasion(project: Project) -> None:
    day_ns = 86_400 * 10**9
    chat = Session(project.assistant())
    chat.turn(".", now_ns=20_000 * day_ns)
    project.words("0.txt", 300)
    project.words("1.txt", 300)
    project.words("2.txt", 300)
    soon = chat.try_turn(".", now_ns=20_000 * day_ns + 10**9)
    assert not soon.is_rewritten
    later = chat.try_turn(".", now_ns=20_001 * day_ns)
    assert later.rewrite_reason == "cache_expired"
    unchanged = Session(project.assistant())
    unchanged.turn(".", now_ns=20_000 * day_ns)
    assert not unchanged.turn(".", now_ns=20_001 * day_ns).is_rewritten


def test_a_full_window_is_relieved(project: Project) -> None:
    options: dict[str, Any] = {"context_tokens": 9_000, "output_tokens": 1_000}
    chat = Session(project.assistant(**options, inline_tokens=6_000))
    chat.turn(".")
    for turn in range(8):
        project.words(f"{turn}.txt", 410)
        packed = chat.turn(".")
        assert packed.tokens.total <= 8_000
        assert not at(packed, "left_out")
    assert "window" in {packed.rewrite_reason for packed in chat.packed}


def test_a_rewrite_keeps_files_that_the_call_does_not_name(project: Project) -> None:
    chat = Session(
        project.assistant(context_tokens=9_000, output_tokens=1_000, inline_tokens=6_000)
    )
    chat.turn(".")
    for turn in range(12):
        project.words("0.txt", 410 + turn)
        packed = chat.turn("0.txt")
        if packed.is_rewritten:
            break
    assert packed.is_rewritten
    assert len(files_in(packed.messages[0].text)) == 10
    assert at(chat.turn("."), "unchanged") == {path.name for path in project.root.iterdir()}


def test_a_rewrite_does_not_forget_which_files_were_inline(project: Project) -> None:
    day_ns = 86_400 * 10**9
    chat = Session(project.assistant(inline_tokens=6_000))
    chat.turn(".", now_ns=20_000 * day_ns)
    project.delete("9.txt")
    for number in range(4):
        project.words(f"{number}.txt", 410)
    assert chat.turn(".", now_ns=20_001 * day_ns).is_rewritten
    project.words("large.txt", 9_000)
    assert chat.turn(".", now_ns=20_001 * day_ns).state.stable is not None
    project.words("9.txt", 400)
    assert "9.txt" in at(chat.turn(".", now_ns=20_001 * day_ns), "inline")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, ""),
        ({"superseded_tokens": 5_100}, "superseded"),
        ({"superseded_tokens": 1_100}, ""),
        ({"superseded_tokens": 1_100, "idle_seconds": 301.0}, "cache_expired"),
        ({"superseded_tokens": 1_100, "idle_seconds": 299.0}, ""),
        ({"superseded_tokens": 900, "idle_seconds": 301.0}, ""),
        ({"superseded_tokens": 10, "is_window_exceeded": True}, "window"),
        ({"superseded_tokens": 0, "is_window_exceeded": True}, ""),
    ],
)
def test_the_rule(values: dict[str, Any], reason: str) -> None:
    usual: dict[str, Any] = {
        "base_tokens": 10_000,
        "superseded_tokens": 0,
        "idle_seconds": None,
        "cache_seconds": 300,
        "is_window_exceeded": False,
    }
    assert rewrite_reason(**{**usual, **values}) == reason

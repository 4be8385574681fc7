"""Which documents are episodes, and of what time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from zibaldone.limits import MEMORY_READ_CHARS_MAX
from zibaldone.model.document import Document
from zibaldone.model.instant import from_iso
from zibaldone.text.memory import episode_of


def document(path: str, body: str = "text", **more: Any) -> Document:
    fields: dict[str, Any] = {
        "title": "",
        "tags": (),
        "parent_id": None,
        "mime": "text/plain",
        "metadata": {},
        "revision": 1,
        "created_at_us": 7,
        "updated_at_us": 8,
        "updated_by": "me",
        "operation": "create",
        **more,
    }
    return Document(document_id=path, body=body, **fields)


@pytest.mark.parametrize("path", ["memory/x", "memory", "memory//", "notes/memory/a/b"])
def test_what_is_no_episode(path: str) -> None:
    assert episode_of(document(path), "text") is None


def test_an_episode_and_its_time() -> None:
    episode = episode_of(document("memory/g/a/b"), "text")
    assert episode is not None
    assert (episode.group_id, episode.episode_id, episode.valid_at_us) == ("g", "a/b", 7)
    dated = document("memory/g/a", metadata={"reference_time": "2026-01-02"})
    assert (found := episode_of(dated, "text")) is not None
    assert found.valid_at_us == from_iso("2026-01-02")
    assert episode_of(document("memory/g/a", deleted_at_us=9), "text") is None


@pytest.mark.parametrize(
    "text",
    [
        "A " * 20_000,
        "Aa's b of " * 9_000,
        "A. " * 30_000,
        "x_y " * 20_000,
        "[[a|" * 20_000,
        "---\n" * 9_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """It is read in the transaction of the document."""
    started_s = time.thread_time()
    assert episode_of(document("memory/g/a", metadata={"source": "message"}), text) is not None
    assert time.thread_time() - started_s < 2
    assert len(text) > MEMORY_READ_CHARS_MAX

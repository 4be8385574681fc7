"""Combining marks: putting thousands of them on one character in order froze the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.drivers.server import Server
from tests.hostile.peers import Bystander

_MARKS = "\u0301\u0323"

# Each took the old code from 1 to 20 s, on the event loop or in the one writer.
_ATTACKS: dict[str, tuple[str, Mapping[str, Any], int]] = {
    "a tag of a search": ("/search", {"query": "x", "tags": ["a" + _MARKS * 60_000]}, 422),
    "a title": ("/documents", {"path": "x", "content": "x", "title": "a" + _MARKS * 60_000}, 422),
    "a tag": ("/documents", {"path": "x", "content": "x", "tags": ["a" + _MARKS * 60_000]}, 422),
    "metadata tags": (
        "/documents",
        {"path": "tagged", "content": "x", "metadata": {"Tags": ["a" + _MARKS * 15_000]}},
        201,
    ),
    "ids": ("/rag/get_docs", {"doc_ids": [f"{n}" + _MARKS * 1_000 for n in range(200)]}, 200),
    "tags of a filter": (
        "/rag/search_fts",
        {"query": "x", "filters": {"tags_any": [f"{n}" + _MARKS * 1_000 for n in range(200)]}},
        200,
    ),
    "a query": ("/search", {"query": "a" + _MARKS * 2_000}, 200),
    "a body": ("/documents", {"path": "marks", "content": "a" + _MARKS * 300_000}, 201),
}


@pytest.mark.parametrize("name", _ATTACKS)
def test_stacked_marks_stop_nobody(shared_server: Server, name: str) -> None:
    path, given, status = _ATTACKS[name]
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post(path, json=dict(given))
        bystander.wait_for_a_round()
    assert answer.status_code == status, answer.text[:500]

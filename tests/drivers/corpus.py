"""The knowledge base that the seed measured, made anew: its counts, its odd ids, its junk row.

`agent_data_rows()` gives the rows of AgentData's table `kb_documents(key, data)`, always the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

ROWS = 5_040
ALIVE_ROWS = 2_907
"""Rows without deleted_at; the junk row is one of them."""
LISTED = ALIVE_ROWS - 1
"""What a list of everything shows: the junk row is no document."""
KNOWLEDGE_ALIVE = 2_570
"""Alive under knowledge/: 26 pages of 100."""
UNDERSCORE_ALIVE = 1_184
BODY_BYTES = 27 * 1024 * 1024
"""Within a hundredth."""
JUNK_BODY_BYTES = 4_400

# Prefixes that a pattern match would confuse, with the ids alive under each.
PROBES: dict[str, tuple[str, ...]] = {
    "knowledge_/": tuple(f"knowledge_/draft-{number}" for number in range(5)),
    "knowledgeX/": tuple(f"knowledgeX/draft-{number}" for number in range(5)),
    "100%": ("100%-coverage", "100%/plan", "100%/report"),
    "100x": ("100x-growth", "100x/plan", "100x/report"),
    "windows\\": ("windows\\paths",),
}

_KNOWLEDGE_FOLDERS = (
    "knowledge/current-state/reports",
    "knowledge/current-state/systems",
    "knowledge/dev/architecture",
    "knowledge/dev/laws",
    "knowledge/dev/ssot",
    "knowledge/test",
)
_OTHER_FOLDERS = (
    "Archive/2024",
    "agents/notes",
    "kiến-thức/ghi-chú",
    "operations/tasks",
    "operations/tasks/comments",
    "registries/services",
)
_TEXT = (
    "agent index commit review deploy rollback vector search prefix document revision tenant "
    "listener queue latency schema migration backup restore ledger policy owner incident metric "
    "giao thức tài liệu nhật ký phiên bản kiểm tra"
)
_WORDS = _TEXT.split()
_ALIVE_PARAGRAPHS = range(2, 9)
# Most of the seed's bytes are in retired reports; alive documents are short, and quick to index.
_DELETED_PARAGRAPHS = range(10, 39)
_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)


def agent_data_rows() -> Iterator[dict[str, Any]]:
    """5 040 rows in the order of their keys' making: the alive, the junk row, the deleted."""
    chance = random.Random(20_260_514)
    paragraphs = [_paragraph(chance) for _ in range(400)]
    for number, document_id in enumerate(_alive_ids()):
        body = "\n\n".join(chance.choices(paragraphs, k=chance.choice(_ALIVE_PARAGRAPHS)))
        yield _row(number, document_id, f"# {document_id}\n\n{body}\n", None)
    yield {
        "key": "",
        "data": {"document_id": "", "content": {"body": "x" * JUNK_BODY_BYTES}, "metadata": {}},
    }
    for number, document_id in enumerate(_deleted_ids()):
        body = "\n\n".join(chance.choices(paragraphs, k=chance.choice(_DELETED_PARAGRAPHS)))
        deleted_at = _FIRST_DAY + timedelta(days=400, minutes=number)
        yield _row(number, document_id, body, deleted_at.isoformat())


def alive_ids() -> list[str]:
    """What a list of everything has to show: byte order, without the junk row."""
    return sorted(_alive_ids(), key=str.encode)


def _alive_ids() -> Iterator[str]:
    probes = [document_id for ids in PROBES.values() for document_id in ids]
    yield from probes
    with_underscore = UNDERSCORE_ALIVE - sum("_" in document_id for document_id in probes)
    for number in range(KNOWLEDGE_ALIVE):
        folder = _KNOWLEDGE_FOLDERS[number % len(_KNOWLEDGE_FOLDERS)]
        joint = "_" if number < with_underscore else "-"
        yield f"{folder}/note{joint}{number:04}.md"
    for number in range(LISTED - KNOWLEDGE_ALIVE - len(probes)):
        yield f"{_OTHER_FOLDERS[number % len(_OTHER_FOLDERS)]}/item-{number:03}"


def _deleted_ids() -> Iterator[str]:
    """Twins of what is alive: a filter that forgets deleted_at shows them at once."""
    count = ROWS - ALIVE_ROWS
    for document_id, _ in zip(_alive_ids(), range(count), strict=False):
        yield f"{document_id}-retired"


def _row(number: int, document_id: str, body: str, deleted_at: str | None) -> dict[str, Any]:
    created = _FIRST_DAY + timedelta(hours=number)
    metadata: dict[str, Any] = {"source": "corpus"}
    if number % 10:
        metadata["title"] = f"Note {number} on {_WORDS[number % len(_WORDS)]}"
        metadata["tags"] = ["corpus", f"group-{number % 7}"]
    return {
        "key": document_id.replace("/", "__"),
        "data": {
            "document_id": document_id,
            "parent_id": document_id.rpartition("/")[0] or "root",
            "content": body if number % 5 == 0 else {"mime_type": "text/markdown", "body": body},
            "metadata": metadata,
            "is_human_readable": True,
            "revision": 1 + number % 9,
            "created_at": created.isoformat(),
            "updated_at": (created + timedelta(minutes=number)).isoformat(),
            "deleted_at": deleted_at,
            "vector_status": "ready",
        },
    }


def _paragraph(chance: random.Random) -> str:
    sentences = [" ".join(chance.choices(_WORDS, k=chance.randint(8, 16))) for _ in range(5)]
    return ". ".join(sentence.capitalize() for sentence in sentences) + "."

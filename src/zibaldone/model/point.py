"""The id of a chunk in a vector index: the same for the same place on every machine."""

from __future__ import annotations

import uuid


def point_id(document_id: str, chunk_index: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{document_id}:chunk:{chunk_index}"))

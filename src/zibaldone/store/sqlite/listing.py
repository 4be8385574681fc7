"""A page of a list that the database wrote as JSON."""

from __future__ import annotations

import orjson

from zibaldone.model.document import DocumentHead
from zibaldone.store import rows
from zibaldone.store.port import Listing

_LISTING: rows.Kinds = (str, int, rows.TEXT_OR_NONE, int)


class JsonListing(Listing):
    """A page that the database wrote as JSON."""

    __slots__ = ("_count", "_items_json", "_last_id")

    def __init__(self, items_json: str, count: int, last_id: str | None, has_more: bool) -> None:
        super().__init__((), has_more)
        self._items_json = items_json
        self._count = count
        self._last_id = last_id

    @property
    def heads(self) -> list[DocumentHead]:
        return [
            DocumentHead(**{**item, "tags": tuple(item["tags"])})
            for item in orjson.loads(self._items_json)
        ]

    @property
    def count(self) -> int:
        return self._count

    @property
    def last_id(self) -> str | None:
        return self._last_id

    def to_json(self) -> str:
        return self._items_json


def listing(row: rows.Row) -> Listing:
    items_json, count, last_id, has_more = rows.require(row, _LISTING)
    return JsonListing(items_json, count, last_id, bool(has_more))

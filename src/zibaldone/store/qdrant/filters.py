"""A filter as Qdrant takes it. It admits everything that passes, and maybe a little more: what it
cannot say is left to the store, which looks at every hit once more."""

from __future__ import annotations

from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.query import Filter

FIELDS = {
    "namespace": "keyword",
    "document_id": "keyword",
    "folders": "keyword",
    "tags": "keyword",
    "document_key": "integer",
    "source_id": "integer",
    "post_type": "integer",
    "created_us": "integer",
    "score": "float",
}
"""What a point carries beside its vector, with the kind of index that Qdrant keeps of it."""


def folders_of(document_id: str) -> list[str]:
    """`a/b/c` is in `a/` and in `a/b/`."""
    parts = document_id.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]


def admits_nothing(wanted: Filter) -> bool:
    several = (wanted.source_ids, wanted.source_names, wanted.document_ids, wanted.tags_any)
    return any(values == () for values in (*several, wanted.post_type_ids))


def conditions(tenant: Tenant, wanted: Filter) -> dict[str, Any]:
    """In the form of Qdrant's REST interface. The namespace is always among them."""
    must = [_match("namespace", tenant.namespace)]
    for prefix in (tenant.prefix, wanted.prefix):
        folder = prefix[: prefix.rfind("/") + 1]
        if folder:
            must.append(_match("folders", folder))
    must += [
        _any(name, values)
        for name, values in (
            ("source_id", wanted.source_ids),
            ("document_id", wanted.document_ids),
            ("post_type", wanted.post_type_ids),
            ("tags", wanted.tags_any),
        )
        if values is not None
    ]
    must += [_match("tags", tag) for tag in wanted.tags_all or ()]
    if wanted.min_score is not None:
        must.append({"key": "score", "range": {"gte": wanted.min_score}})
    dates = {"gte": wanted.created_after_us, "lt": wanted.created_before_us}
    if any(bound is not None for bound in dates.values()):
        given = {name: bound for name, bound in dates.items() if bound is not None}
        must.append({"key": "created_us", "range": given})
    must_not = [_any("document_id", wanted.without_ids)] if wanted.without_ids else []
    return {"must": must, "must_not": must_not}


def _match(name: str, value: str) -> dict[str, Any]:
    return {"key": name, "match": {"value": value}}


def _any(name: str, values: tuple[Any, ...]) -> dict[str, Any]:
    return {"key": name, "match": {"any": list(values)}}

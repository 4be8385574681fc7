"""A filter as the values that the statements of lexical.sql and vectors.sql take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.query import Filter
from zibaldone.store.tenants import visible_range


def filter_values(tenant: Tenant, wanted: Filter) -> dict[str, Any] | None:
    """Values for every condition; None when nothing can match."""
    bounds = visible_range(tenant, wanted.prefix)
    if bounds is None:
        return None
    return {
        "namespace": tenant.namespace,
        "start": bounds[0],
        "end": bounds[1],
        "source_ids": _listed(wanted.source_ids),
        "source_names": _listed(wanted.source_names),
        "document_ids": _listed(wanted.document_ids),
        "without_ids": _listed(wanted.without_ids),
        "min_score": wanted.min_score,
        "post_types": _listed(wanted.post_type_ids),
        "tags_any": _listed(wanted.tags_any),
        "tags_all": _listed(wanted.tags_all),
        "created_after": wanted.created_after_us,
        "created_before": wanted.created_before_us,
        "updated_after": wanted.updated_after_us,
        "updated_before": wanted.updated_before_us,
    }


def _listed(values: Sequence[Any] | None) -> str | None:
    return None if values is None else orjson.dumps(values).decode()

"""What a filter admits, as searches ask for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction, settings_statement
from zibaldone.store.tenants import visible_range

_SQL = statements.load("zibaldone.store.postgres", "eligible.sql")

PLANNED_ANEW = settings_statement({"plan_cache_mode": "force_custom_plan", "jit": "off"})
"""For statements whose best plan depends on the filter; compiling them would take longer than
running them."""


_LOOKED_UP_MAX = 1_000
"""Chunks that are looked up one by one, which takes some 10 µs each."""


def filter_values(tenant: Tenant, wanted: Filter) -> dict[str, Any] | None:
    """Values for every condition; None when nothing can match."""
    bounds = visible_range(tenant, wanted.prefix)
    if bounds is None:
        return None
    tags_any, tags_all = _listed(wanted.tags_any), _listed(wanted.tags_all or None)
    if tags_all is not None and len(tags_all) == 1 and tags_any is None:
        tags_any, tags_all = tags_all, None  # the same, and easier to plan
    return {
        "namespace": tenant.namespace,
        "start": bounds[0],
        "end": bounds[1],
        "source_ids": _listed(wanted.source_ids),
        "source_names": _listed(wanted.source_names),
        "document_ids": _listed(wanted.document_ids),
        "without_ids": _listed(wanted.without_ids or None),  # the same
        "min_score": wanted.min_score,
        "post_types": _listed(wanted.post_type_ids),
        "tags_any": tags_any,
        "tags_all": tags_all,  # none at all admit everything
        # In a range of paths each document is asked for its tags: elsewhere they may be on many.
        "tags_in_range": tags_all if bounds[1] is not None else None,
        "tags_anywhere": tags_all if bounds[1] is None else None,
        "created_after": wanted.created_after_us,
        "created_before": wanted.created_before_us,
        "updated_after": wanted.updated_after_us,
        "updated_before": wanted.updated_before_us,
    }


def with_filter(sql: str, values: Mapping[str, Any]) -> str:
    """A statement with its mark replaced by what passes, and of that what the filter says."""
    return _assembled(sql, frozenset(name for name, value in values.items() if value is not None))


@lru_cache(256)
def _assembled(sql: str, said: frozenset[str]) -> str:
    one = _SQL["document"].replace("%(document_key)s", "o.document_key")
    sql = sql.replace("/*eligible*/SELECT o.document_key", one)
    sql = sql.replace("/*eligible*/VALUES (0::bigint)", _SQL["documents"])
    return _CONDITION.sub(lambda match: match[2] if match[1] in said else "", sql)


_CONDITION = re.compile(r"/\*if (\w+)\*/(.*?)/\*fi\*/", re.DOTALL)


def expected_documents(transaction: Transaction, values: dict[str, Any]) -> int:
    """How many documents pass, as the planner expects."""
    transaction.defer(*PLANNED_ANEW)
    sql = with_filter(_SQL["documents"], values)
    plan = transaction.value(f"EXPLAIN (FORMAT JSON) {sql}", values)
    return int(plan[0]["Plan"]["Plan Rows"])


def is_open(tenant: Tenant, wanted: Filter) -> bool:
    """Whether everything in the namespace passes, disabled sources apart."""
    return wanted == NO_FILTER and not tenant.prefix


def present_chunks(
    transaction: Transaction, values: dict[str, Any], chunk_keys: list[int]
) -> set[int] | None:
    """Those that pass where nothing is filtered. None: some sources are disabled."""
    keys = {"namespace": values["namespace"], "chunk_keys": chunk_keys}
    present = {row[0] for row in transaction.execute(_SQL["present"], keys)}
    return None if None in present else present


def eligible_chunks(
    transaction: Transaction, values: dict[str, Any], chunk_keys: list[int]
) -> set[int]:
    """Those of these chunks that pass."""
    transaction.defer(*PLANNED_ANEW)
    statement = "chunks_looked_up" if len(chunk_keys) <= _LOOKED_UP_MAX else "chunks"
    selected = transaction.execute(
        with_filter(_SQL[statement], values), {**values, "chunk_keys": chunk_keys}
    )
    return {row[0] for row in selected}


def all_eligible(transaction: Transaction, values: dict[str, Any], limit: int) -> list[int] | None:
    """Every chunk that passes; None: there are more than `limit`."""
    transaction.defer(*PLANNED_ANEW)
    selected = transaction.execute(with_filter(_SQL["few"], values), {**values, "limit": limit + 1})
    return None if len(selected) > limit else [row[0] for row in selected]


def _listed(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)

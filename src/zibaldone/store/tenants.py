"""The tenant filter, as the values that statements take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, Forbidden
from zibaldone.limits import DOCUMENT_ID_BYTES_MAX
from zibaldone.model.document import Document
from zibaldone.model.memory import MEMORY_PREFIX
from zibaldone.text.normalize import prefix_end

AFTER_EVERY_ID = "\U0010ffff" * DOCUMENT_ID_BYTES_MAX
"""An upper bound where a prefix has none: no id is as long."""

_TIME_MAX = 2**62


def tenant_values(tenant: Tenant) -> dict[str, Any]:
    """The tenant filter, as every statement about given ids takes it."""
    return {
        "namespace": tenant.namespace,
        "tenant_start": tenant.prefix,
        "tenant_end": prefix_end(tenant.prefix),
    }


def range_values(tenant: Tenant) -> dict[str, Any]:
    """The same, as statements about many ids take it."""
    return {
        "namespace": tenant.namespace,
        "start": tenant.prefix,
        "end": prefix_end(tenant.prefix),
    }


def visible_range(tenant: Tenant, prefix: str) -> tuple[str, str | None] | None:
    """The range of ids that is both asked for and visible; None when there is none."""
    start = max(prefix, tenant.prefix, key=len)
    if not (start.startswith(prefix) and start.startswith(tenant.prefix)):
        return None
    return start, prefix_end(start)


def seen_groups(tenant: Tenant, group_ids: Iterable[str]) -> list[str]:
    """The groups of memory that have a place in the tenant's folder: others cost nothing."""
    return [
        group_id
        for group_id in group_ids
        if visible_range(tenant, f"{MEMORY_PREFIX}{group_id}/") is not None
    ]


def recent_values(
    tenant: Tenant,
    prefix: str,
    since_us: int | None,
    until_us: int | None,
    before: tuple[int, str] | None,
) -> dict[str, Any] | None:
    """What a list by time takes; None where it has nothing to show."""
    visible = visible_range(tenant, prefix)
    if visible is None:
        return None
    until = (_TIME_MAX if until_us is None else until_us, "")  # no id is before the empty one
    last_us, last_id = until if before is None else min(until, before)
    return {
        "namespace": tenant.namespace,
        "start": visible[0],
        "end": visible[1],
        "since": -_TIME_MAX if since_us is None else since_us,
        "until": last_us,
        "last_id": last_id,
    }


def require_visible(tenant: Tenant, document: Document) -> None:
    """Forbidden: the document is outside."""
    if not document.document_id.startswith(tenant.prefix):
        raise Forbidden(
            f"{document.document_id!r} is outside {tenant.prefix!r}.",
            allowed_prefix=tenant.prefix,
        )


def id_is_taken(document_id: str) -> Conflict:
    return Conflict(f"A document {document_id!r} exists already.", document_id=document_id)

"""What a transaction may see and use, as settings of the server."""

from __future__ import annotations

from collections.abc import Mapping

NAMESPACE = "zibaldone.namespace"
UPKEEP = "zibaldone.upkeep"
"""What row-level security asks for."""

_ALONE = {"max_parallel_workers_per_gather": "0"}
"""PostgreSQL starts no helpers for a caller's statement. They are few for all callers together, and
to start them takes several times as long as a statement of ours."""


def of_namespace(namespace: str) -> Mapping[str, str]:
    return {NAMESPACE: namespace, UPKEEP: "off", **_ALONE}


OF_UPKEEP: Mapping[str, str] = {NAMESPACE: "", UPKEEP: "on"}
"""Everything."""

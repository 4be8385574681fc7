"""What a transaction may see, as settings of the server that row-level security asks for."""

from __future__ import annotations

from collections.abc import Mapping

NAMESPACE = "zibaldone.namespace"
UPKEEP = "zibaldone.upkeep"


def of_namespace(namespace: str) -> Mapping[str, str]:
    return {NAMESPACE: namespace, UPKEEP: "off"}


OF_UPKEEP: Mapping[str, str] = {NAMESPACE: "", UPKEEP: "on"}
"""Everything."""

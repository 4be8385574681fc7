"""Which graph database is behind a memory server, as far as it matters to whoever asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from zibaldone.errors import ConfigurationError

Backend = Literal["neo4j", "falkordb"]

VARIABLE = "MADEINOZ_KNOWLEDGE_DB"
"""The variable of the environment by which existing hooks name the database."""

_BACKENDS: Mapping[str, Backend] = {
    "neo4j": "neo4j",
    "falkorodb": "falkordb",  # the spelling of existing configurations
    "falkordb": "falkordb",
}


def choose_backend(setting: str, environment: Mapping[str, str]) -> Backend:
    """The setting if there is one, else what the environment says, else neo4j."""
    name, given = ("push_backend", setting) if setting else (VARIABLE, environment.get(VARIABLE))
    if not given:
        return "neo4j"
    backend = _BACKENDS.get(given)
    if backend is None:
        raise ConfigurationError(
            f"Invalid {name}: {given}. Must be one of: {', '.join(_BACKENDS)}."
        )
    return backend

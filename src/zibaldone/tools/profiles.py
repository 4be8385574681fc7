"""Profiles: which tools a path offers, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from zibaldone.errors import ConfigurationError
from zibaldone.tools.catalog import BY_NAME

Spelling = Literal["as_declared", "underscores"]

READONLY = (
    "search_knowledge",
    "list_documents",
    "get_document",
    "get_document_for_rewrite",
    "batch_read",
)
GPT = (*READONLY, "upload_document", "update_document", "patch_document")
FULL = (*GPT, "delete_document", "ingest_document")
RAG = (
    "rag.search_fts",
    "rag.search_vector",
    "rag.search_hybrid",
    "rag.get_chunks",
    "rag.get_docs",
    "rag.fetch_from_source",
    "rag.admin.stats",
    "rag.admin.sync",
)
EVERYTHING = tuple(BY_NAME)


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    path: str
    tools: tuple[str, ...]
    spelling: Spelling = "as_declared"
    is_public: bool = True
    """False: only for callers on this machine, unless the operator opens it."""
    is_main: bool = False
    """The main profile calls a name it does not have unknown; the others call it not allowed."""


BUILT_IN: tuple[Profile, ...] = (
    Profile("mcp", "/mcp", FULL, is_main=True),
    Profile("readonly", "/mcp-readonly", READONLY),
    Profile("gpt", "/mcp-gpt", GPT),
    Profile("gpt-full", "/mcp-gpt-full", FULL, is_public=False),
    Profile("rag", "/mcp-rag", RAG),
    Profile("all", "/mcp-all", EVERYTHING, spelling="underscores"),
)


def all_profiles(defined: Mapping[str, object]) -> tuple[Profile, ...]:
    """The built-in profiles and those of the configuration, `name = ["tool", …]`."""
    taken = {profile.name for profile in BUILT_IN}
    own = []
    for name, tools in defined.items():
        if name in taken:
            raise ConfigurationError(f"profiles.{name}: a built-in profile has this name.")
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ConfigurationError(
                f"profiles.{name}: a name is made of letters, digits, '-' and '_'."
            )
        if not isinstance(tools, list) or not tools:
            raise ConfigurationError(f"profiles.{name}: give a list of tool names.")
        unknown = [tool for tool in tools if tool not in BY_NAME]
        if unknown:
            raise ConfigurationError(
                f"profiles.{name}: unknown tool {unknown[0]!r}; there are {', '.join(BY_NAME)}."
            )
        own.append(Profile(name, f"/mcp-{name}", tuple(tools)))
    return (*BUILT_IN, *own)

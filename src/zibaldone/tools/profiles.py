"""Profiles: which tools a path offers, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from zibaldone.errors import ConfigurationError
from zibaldone.tools.spec import AnyTool

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
DESK = (
    *FULL,
    "recent_changes",
    "document_history",
    "document_revision",
    "document_diff",
    "restore_document",
    "rename_document",
    "document_links",
)
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
MEMORY = (
    "add_memory",
    "search_nodes",
    "search_memory_facts",
    "get_episodes",
    "delete_episode",
    "clear_graph",
    "get_status",
    "recall",
)

CONSULT = ("count_tokens", "cancel_job")
"""What belongs to asking assistants, beside the tools that are made for each."""


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
    is_like_graphiti: bool = False
    """For clients written for Graphiti's server: they read nothing but events, whatever else they
    accept, and append `/mcp` and `/health` to the address they are given."""


def built_in(tools: Iterable[AnyTool], consult: Sequence[str] = ()) -> tuple[Profile, ...]:
    """`consult`: the tools of assistants, which are there if the settings have one."""
    everything = tuple(tool.name for tool in tools if not tool.is_local)
    profiles: tuple[Profile, ...] = (
        Profile("mcp", "/mcp", FULL, is_main=True),
        Profile("readonly", "/mcp-readonly", READONLY),
        Profile("gpt", "/mcp-gpt", GPT),
        Profile("gpt-full", "/mcp-gpt-full", FULL, is_public=False),
        Profile("rag", "/mcp-rag", RAG),
        Profile("desk", "/mcp-desk", DESK),
        Profile("memory", "/mcp-memory", MEMORY, is_like_graphiti=True),
        Profile("all", "/mcp-all", everything, spelling="underscores"),
    )
    if consult:
        more = tuple(name for name in CONSULT if name in everything)
        profiles = (*profiles, Profile("consult", "/mcp-consult", (*consult, *more)))
    return profiles


def configured(defined: Mapping[str, object], taken: Iterable[Profile]) -> tuple[Profile, ...]:
    """The profiles of the configuration, `name = ["tool", …]`."""
    names = {profile.name for profile in taken}
    return tuple(_configured(name, tools, names) for name, tools in defined.items())


def _configured(name: str, tools: object, taken: set[str]) -> Profile:
    if name in taken:
        raise ConfigurationError(f"profiles.{name}: a built-in profile has this name.")
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ConfigurationError(
            f"profiles.{name}: a name is made of letters, digits, '-' and '_'."
        )
    if not isinstance(tools, list) or not tools:
        raise ConfigurationError(f"profiles.{name}: give a list of tool names.")
    return Profile(name, f"/mcp-{name}", tuple(tools))

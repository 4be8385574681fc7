"""Every REST operation, in one table: the router, OpenAPI and the tests read it from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from zibaldone.errors import BadRequest, InvalidArgument

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Route:
    """Arguments come from the path, then from the query string (GET and DELETE: it is all text) or
    from a JSON body (the other methods)."""

    method: Method
    path: str
    """`{path}` stands for a document's path, which may have slashes; other names for one segment.
    Of the routes that match a URL, the first one counts."""
    tool: str | None = None
    """None: `web.app` has an endpoint for it, or it is refused."""
    status: int = 200
    """Of an answer that created something; any other is 200."""
    refusal: str = ""
    """Why nothing is called: the answer is NOT_IMPLEMENTED with this message."""
    prepare: Callable[[dict[str, Any]], str | None] | None = None
    """Turns the query string into arguments, in place; may name another tool to call."""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schemas of the parameters that `prepare` takes out of the query string."""
    is_shared: bool = False
    """Other methods on this path are looked up in the routes that follow."""

    @property
    def is_text(self) -> bool:
        """Do the arguments come as text in the URL?"""
        return self.method in ("GET", "DELETE")


def _choose_view(arguments: dict[str, Any]) -> str | None:
    """The whole document, unless a range or the short view is asked for."""
    view = arguments.pop("view", None)
    if view not in (None, "full", "preview"):
        raise InvalidArgument("view must be 'full' or 'preview'.", field="view")
    if view == "preview" or (view is None and arguments):
        arguments.setdefault("related", view == "preview")
        return None
    return "get_document_for_rewrite"


def _split_tags(arguments: dict[str, Any]) -> None:
    if "tags" in arguments:
        arguments["tags"] = arguments["tags"].split(",")


def _refuse_heal(arguments: dict[str, Any]) -> None:
    if "heal" in arguments:
        raise BadRequest("Healing changes something: use POST.", field="heal")


_NO_MOVE = "Moving a document is not offered; create it at the new path and delete the old one."
_VIEW = {"view": {"type": "string", "enum": ["full", "preview"]}}

ROUTES: tuple[Route, ...] = (
    Route("GET", "/documents", "list_documents"),
    Route("POST", "/documents", "upload_document", status=201),
    Route("GET", "/documents/{path}/revisions", "document_history"),
    Route("GET", "/documents/{path}/revisions/diff", "document_diff"),
    Route("GET", "/documents/{path}/revisions/{revision}", "document_revision"),
    Route("POST", "/documents/{path}/revisions/{revision}/restore", "restore_document"),
    Route("POST", "/documents/{path}/rename", "rename_document", is_shared=True),
    Route("POST", "/documents/{path}/move", refusal=_NO_MOVE, is_shared=True),
    Route("GET", "/documents/{path}", "get_document", prepare=_choose_view, parameters=_VIEW),
    Route("PUT", "/documents/{path}", "update_document"),
    Route("PATCH", "/documents/{path}", "patch_document"),
    Route("DELETE", "/documents/{path}", "delete_document"),
    Route("GET", "/changes", "recent_changes"),
    Route("GET", "/links", "document_links"),
    Route("GET", "/search", "search_knowledge", prepare=_split_tags),
    Route("POST", "/search", "search_knowledge"),
    Route("POST", "/batch-read", "batch_read"),
    Route("POST", "/ingest", "ingest_document"),
    Route("POST", "/rag/search_fts", "rag.search_fts"),
    Route("POST", "/rag/search_vector", "rag.search_vector"),
    Route("POST", "/rag/search_hybrid", "rag.search_hybrid"),
    Route("POST", "/rag/get_chunks", "rag.get_chunks"),
    Route("POST", "/rag/get_docs", "rag.get_docs"),
    Route("POST", "/rag/fetch_from_source", "rag.fetch_from_source"),
    Route("POST", "/rag/admin/stats", "rag.admin.stats"),
    Route("POST", "/rag/admin/sync", "rag.admin.sync"),
    Route("POST", "/memory/add_memory", "add_memory"),
    Route("POST", "/memory/search_nodes", "search_nodes"),
    Route("POST", "/memory/search_memory_facts", "search_memory_facts"),
    Route("POST", "/memory/get_episodes", "get_episodes"),
    Route("POST", "/memory/delete_episode", "delete_episode"),
    Route("POST", "/memory/clear_graph", "clear_graph"),
    Route("POST", "/memory/get_status", "get_status"),
    Route("POST", "/memory/recall", "recall"),
    Route("POST", "/count_tokens", "count_tokens"),
    Route("POST", "/kb/reindex-missing", "reindex_missing"),
    Route("GET", "/kb/audit-sync", "audit_sync", prepare=_refuse_heal),
    Route("POST", "/kb/audit-sync", "audit_sync"),
    Route("POST", "/kb/cleanup-orphans", "cleanup_orphans"),
    Route("GET", "/jobs", "list_jobs"),
    Route("GET", "/jobs/{job_id}", "get_job"),
    Route("POST", "/jobs/{job_id}/cancel", "cancel_job"),
    Route("POST", "/jobs/{job_id}/retry", "retry_job"),
    Route("GET", "/live"),
    Route("GET", "/health"),
    Route("GET", "/metrics"),
    Route("GET", "/openapi.json"),
)

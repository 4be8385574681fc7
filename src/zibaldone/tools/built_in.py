"""The tools that come with the product; `wiring` makes a catalogue of them."""

from __future__ import annotations

from zibaldone.tools.consult import files
from zibaldone.tools.documents import (
    batch_read,
    delete_document,
    document_links,
    get_document,
    get_document_for_rewrite,
    history,
    ingest_document,
    list_documents,
    patch_document,
    recent_changes,
    rename_document,
    search_knowledge,
    update_document,
    upload_document,
)
from zibaldone.tools.exchange import import_documents
from zibaldone.tools.jobs import jobs
from zibaldone.tools.memory import audit, episodes, recall
from zibaldone.tools.memory import search as memory_search
from zibaldone.tools.rag import (
    admin,
    fetch_from_source,
    get_chunks,
    get_docs,
    search_fts,
    search_hybrid,
    search_vector,
    sync,
)
from zibaldone.tools.sources import definitions, manage
from zibaldone.tools.sources import sync as sync_and_wait
from zibaldone.tools.spec import AnyTool
from zibaldone.tools.upkeep import index, keys, sources, usage

TOOLS: tuple[AnyTool, ...] = (
    search_knowledge.TOOL,
    list_documents.TOOL,
    get_document.TOOL,
    get_document_for_rewrite.TOOL,
    batch_read.TOOL,
    upload_document.TOOL,
    update_document.TOOL,
    patch_document.TOOL,
    delete_document.TOOL,
    ingest_document.TOOL,
    search_fts.TOOL,
    search_vector.TOOL,
    search_hybrid.TOOL,
    get_chunks.TOOL,
    get_docs.TOOL,
    fetch_from_source.TOOL,
    admin.STATS,
    sync.TOOL,
    episodes.ADD,
    memory_search.NODES,
    memory_search.FACTS,
    episodes.GET,
    episodes.DELETE,
    episodes.CLEAR,
    episodes.STATUS,
    recall.TOOL,
    history.HISTORY,
    history.REVISION,
    history.DIFF,
    history.RESTORE,
    recent_changes.TOOL,
    rename_document.TOOL,
    document_links.TOOL,
    index.REINDEX,
    index.AUDIT,
    index.CLEANUP,
    jobs.LIST,
    jobs.GET,
    jobs.CANCEL,
    jobs.RETRY,
    index.STATUS,
    keys.CREATE,
    keys.LIST,
    keys.REVOKE,
    usage.TOOL,
    audit.TOOL,
    sources.LIST,
    sources.SHOW,
    sources.SET,
    definitions.TABLES,
    definitions.PROPOSE,
    definitions.ADD,
    manage.SHOW,
    manage.TEST,
    manage.PREVIEW,
    manage.ENABLE,
    manage.REMOVE,
    sync_and_wait.TOOL,
    import_documents.IMPORT,
    import_documents.PREVIEW,
    files.COUNT,
    files.PREVIEW,
)

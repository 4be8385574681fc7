"""All tools there are."""

from __future__ import annotations

from typing import Any

from commonplace.tools.documents import (
    batch_read,
    delete_document,
    get_document,
    get_document_for_rewrite,
    history,
    ingest_document,
    list_documents,
    patch_document,
    search_knowledge,
    update_document,
    upload_document,
)
from commonplace.tools.spec import ToolSpec

ALL: tuple[ToolSpec[Any], ...] = (
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
    history.HISTORY,
    history.REVISION,
    history.DIFF,
    history.RESTORE,
)

BY_NAME = {tool.name: tool for tool in ALL}

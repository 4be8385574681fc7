"""What a client is told of a profile, made from the tools that the profile has."""

from __future__ import annotations

from collections.abc import Iterator, Set

from zibaldone.tools.profiles import DESK, RAG

_OF_DOCUMENTS = frozenset({*DESK, *RAG})
_WRITERS = ("update_document", "patch_document", "upload_document")


def instructions(tools: Set[str]) -> str:
    """How to work with these tools, in a few sentences that name no others."""
    sentences = [_what_it_is(tools)]
    if advice := "; ".join(_advice(tools)):
        sentences.append(f"{advice}.")
    if "upload_document" in tools:
        sentences.append("Put what others should know under a clear path with upload_document.")
    elif "add_memory" in tools:
        sentences.append("Keep what should be remembered with add_memory.")
    if assistants := sorted(name for name in tools if name.startswith("chat_with_")):
        others = " and the other chat_with tools" if len(assistants) > 1 else ""
        sentences.append(
            f"Ask with {assistants[0]}{others}: give the whole context in every turn, only what "
            "changed is sent."
        )
    if looking_back := "; ".join(_looking_back(tools)):
        sentences.append(f"{looking_back}.")
    return " ".join(sentences)


def _what_it_is(tools: Set[str]) -> str:
    if not tools & _OF_DOCUMENTS:
        if "add_memory" in tools:
            return "A shared memory of agents."
        if any(name.startswith("chat_with_") for name in tools):
            return "Other models that can be asked about files."
    return "A shared knowledge base of documents under paths."


def _advice(tools: Set[str]) -> Iterator[str]:
    if "search_knowledge" in tools:
        yield "search_knowledge before you answer from memory"
    elif "rag.search_hybrid" in tools:
        yield "rag.search_hybrid before you answer from memory"
    elif "list_documents" in tools:
        yield "list_documents to see what is there"
    elif "recall" in tools:
        yield "recall what is known before you begin a task"
    elif "search_memory_facts" in tools:
        yield "search_memory_facts before you answer from memory"
    reading = _reading(tools)
    if reading:
        yield reading
    if "patch_document" in tools:
        yield "patch_document for small edits"


def _reading(tools: Set[str]) -> str:
    parts = []
    if "get_document" in tools:
        parts.append("get_document to look")
    if "get_document_for_rewrite" in tools:
        is_for_writing = any(name in tools for name in _WRITERS)
        why = "before rewriting" if is_for_writing else "for a whole document"
        parts.append(f"get_document_for_rewrite {why}")
    if not parts and "rag.get_chunks" in tools:
        parts.append("rag.get_chunks to read on around what was found")
    if not parts and "rag.get_docs" in tools:
        parts.append("rag.get_docs to read what was found")
    return ", ".join(parts)


def _looking_back(tools: Set[str]) -> Iterator[str]:
    if "recent_changes" in tools and "upload_document" in tools:
        yield "recent_changes shows what others did"
    if "document_history" in tools and "restore_document" in tools:
        yield "document_history and restore_document undo"

"""Settings → what consultations need."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from zibaldone.access.principal import Principal, Tenant
from zibaldone.access.turns import TaskTurns
from zibaldone.consult.answer import ChatAnswer, StoredAnswer
from zibaldone.consult.extract import AssistantExtractor
from zibaldone.consult.functions import FileStore, Knowledge
from zibaldone.consult.hosted import hosted_index, sweep_leftovers
from zibaldone.consult.job import StoreAnswer
from zibaldone.consult.providers.open import open_provider
from zibaldone.consult.turn import Consulting
from zibaldone.embed.port import Embedder
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.memory.job import Extractor
from zibaldone.model.assistant import Assistant
from zibaldone.pack.counts import Counts
from zibaldone.pack.files import PackedFile
from zibaldone.pack.overflow import ephemeral_index
from zibaldone.pack.vector_cache import VectorCache
from zibaldone.store.port import Store
from zibaldone.text.secrets import redact
from zibaldone.tools.call import call_tool
from zibaldone.tools.documents import search_knowledge, upload_document
from zibaldone.tools.spec import Call, Runtime

_log = logging.getLogger("zibaldone.consult")

RuntimeOf = Callable[[], Runtime]
"""The runtime that is being built: it holds the job runner, which holds what is made here."""


def build_consulting(
    store: Store,
    limits: Limits,
    assistants: Mapping[str, Assistant],
    embedder: Embedder | None,
    runtime_of: RuntimeOf,
    *,
    counts: Counts,
    packs: TaskTurns,
) -> Consulting:
    cache = VectorCache()

    @asynccontextmanager
    async def open_files(
        assistant: Assistant, files: Sequence[PackedFile], owner: str
    ) -> AsyncIterator[FileStore]:
        if assistant.hosted_store:
            async with hosted_index(files, assistant=assistant, environment=os.environ) as hosted:
                yield hosted
            return
        async with ephemeral_index(files, embedder=embedder, cache=cache, share=owner) as index:
            yield index

    def knowledge_of(tenant: Tenant, owner: str) -> Knowledge:
        return _knowledge(runtime_of(), tenant, owner)

    return Consulting(
        store=store,
        limits=limits,
        assistants=assistants,
        open_provider=lambda assistant: open_provider(assistant, os.environ),
        open_files=open_files,
        knowledge_of=knowledge_of,
        packs=packs,
        counts=counts,
    )


def build_extractor(store: Store, limits: Limits, assistant: Assistant) -> Extractor:
    return AssistantExtractor(
        store, limits, assistant, lambda chosen: open_provider(chosen, os.environ)
    )


async def sweep_hosted(assistants: Mapping[str, Assistant]) -> None:
    """Delete what calls of servers that died left in hosted stores."""
    for assistant in assistants.values():
        if assistant.hosted_store:
            try:
                await sweep_leftovers(assistant, os.environ)
            except ZibaldoneError as error:
                _log.warning("hosted stores were not swept: %s [%s]", error.message, error.code)


def _knowledge(runtime: Runtime, tenant: Tenant, owner: str) -> Knowledge:
    """The search of the knowledge base as the caller, who may read."""
    principal = Principal(owner, tenant, frozenset({"read"}))

    async def search(query: str, limit: int) -> str:
        arguments = {"query": query, "limit": limit}
        found = await call_tool(search_knowledge.TOOL, Call(runtime, principal), arguments)
        hits = [
            f"{hit['document_id']}: {hit['title']}\n"
            + "\n".join(passage["snippet"] for passage in hit["passages"])
            for hit in found["results"]
        ]
        return redact("\n\n".join(hits)).text if hits else "Nothing in the knowledge base matches."

    return search


def answer_writer(runtime_of: RuntimeOf) -> StoreAnswer:
    """Writes an answer as a document, in the name of the caller and with the caller's effects."""

    async def store_answer(
        tenant: Tenant, owner: str, payload: Mapping[str, Any], answer: ChatAnswer
    ) -> StoredAnswer | None:
        path = payload.get("store_answer")
        if not isinstance(path, str):
            return None
        principal = Principal(owner, tenant, frozenset(payload.get("effects", ())))
        source = {
            "assistant": answer["assistant"],
            "session_id": answer["session_id"],
            "turn": answer["turn"],
            "model": answer["model"],
        }
        arguments = {
            "path": path,
            "content": answer["answer"],
            "title": str(payload.get("instructions", ""))[:120].strip(),
            "metadata": {"source": "consult", **source},
            "upsert": True,
        }
        call = Call(runtime_of(), principal)
        try:
            written = await call_tool(upload_document.TOOL, call, arguments)
        except ZibaldoneError as error:
            return {"path": path, "error": f"{error.message} [{error.code}]"}
        return {"path": written["id"], "revision": written["revision"]}

    return store_answer

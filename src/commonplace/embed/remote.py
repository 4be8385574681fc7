"""Any server that speaks the OpenAI embeddings API: OpenAI, Ollama, vLLM, TEI, llama.cpp."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from commonplace.embed.port import Vectors
from commonplace.errors import ConfigurationError, EmbeddingFailed, NotConfigured
from commonplace.limits import (
    EMBED_BATCH_MAX,
    EMBED_RESPONSE_BYTES_MAX,
    EMBED_RETRY_AFTER_SECONDS_MAX,
    EMBED_TRIES_MAX,
)

_SPLIT_STATUSES = frozenset({413, 422})
_RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504})


class Remote:
    """One model behind an address; the key goes into a header and nowhere else."""

    def __init__(
        self, url: str, model: str, *, dimensions: int, api_key: str = "", seconds_max: float = 30.0
    ) -> None:
        if not url.startswith(("http://", "https://")) or not model or dimensions < 1:
            raise ConfigurationError(
                "A remote embedder needs embedding_url, embedding_model and embedding_dimensions."
            )
        self.name = model
        self.dimensions = dimensions
        self.identity = f"remote/{model}/{dimensions}"
        self._url = url.rstrip("/") + "/embeddings"
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._seconds_max = seconds_max
        self._client: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        parts = [
            self._embed_batch(texts[start : start + EMBED_BATCH_MAX])
            for start in range(0, len(texts), EMBED_BATCH_MAX)
        ]
        return np.concatenate(parts)

    def vector_weight(self, text: str) -> float:
        del text
        return 1.0

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        status, answer = self._post(texts)
        if status in _SPLIT_STATUSES and len(texts) > 1:
            middle = len(texts) // 2
            halves = (self._embed_batch(texts[:middle]), self._embed_batch(texts[middle:]))
            return np.concatenate(halves)
        if status != 200:
            raise EmbeddingFailed(f"{self.name}: the embedding server answered {status}.")
        return self._vectors(answer, len(texts))

    def _post(self, texts: Sequence[str]) -> tuple[int, Any]:
        """Status and parsed body; waits and asks again where the server says it is busy."""
        client = self._opened()
        body = {"model": self.name, "input": list(texts)}
        for attempt in range(EMBED_TRIES_MAX):
            try:
                answer = client.post(self._url, json=body, headers=self._headers)
            except client_errors() as problem:
                wait_s = 2.0**attempt / 4
                failure = f"{self.name}: {type(problem).__name__}"
            else:
                if answer.status_code not in _RETRIED_STATUSES:
                    return answer.status_code, self._parsed(answer)
                wait_s = _retry_after_s(answer.headers.get("retry-after"), 2.0**attempt / 4)
                failure = f"{self.name}: the embedding server answered {answer.status_code}."
            if attempt + 1 < EMBED_TRIES_MAX:
                time.sleep(wait_s)
        raise EmbeddingFailed(failure)

    def _parsed(self, answer: Any) -> Any:
        if len(answer.content) > EMBED_RESPONSE_BYTES_MAX:
            raise EmbeddingFailed(f"{self.name}: the embedding server's answer is too long.")
        try:
            return answer.json()
        except ValueError:
            return None

    def _vectors(self, answer: Any, count: int) -> Vectors:
        try:
            entries = sorted(answer["data"], key=lambda entry: entry["index"])
            rows = np.stack([_vector(entry["embedding"]) for entry in entries])
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise EmbeddingFailed(f"{self.name}: the embedding server's answer is odd.") from None
        if rows.shape != (count, self.dimensions) or not np.isfinite(rows).all():
            raise EmbeddingFailed(
                f"{self.name}: got vectors of shape {rows.shape}, expected "
                f"{(count, self.dimensions)}; check embedding_dimensions."
            )
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Vectors = rows / np.maximum(norms, 1e-12)
        return unit

    def _opened(self) -> Any:
        if self._client is None:
            try:
                import httpx2
            except ImportError:
                raise NotConfigured(
                    "A remote embedder needs a package: pip install 'commonplace[remote]'"
                ) from None
            self._client = httpx2.Client(timeout=self._seconds_max)
        return self._client


def client_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.TransportError,)


def _vector(embedding: Any) -> Vectors:
    """A list of numbers, or base64 of little-endian float32."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), np.dtype("<f4"))
    return np.asarray(embedding, np.float32)


def _retry_after_s(header: str | None, otherwise_s: float) -> float:
    try:
        wanted_s = float(header) if header is not None else otherwise_s
    except ValueError:
        wanted_s = otherwise_s
    return min(max(wanted_s, 0.0), EMBED_RETRY_AFTER_SECONDS_MAX)

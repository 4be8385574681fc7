"""An embedder that remembers whether its last use worked, for health checks."""

from __future__ import annotations

from collections.abc import Sequence

from zibaldone.embed.port import Embedder, Vectors
from zibaldone.errors import ZibaldoneError


class Watched:
    """Wraps a model. Trying the model for each health check would load it, or cost money."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.identity = inner.identity
        self.name = inner.name
        self.dimensions = inner.dimensions
        self.similarity_min = inner.similarity_min
        self.problem: str | None = None
        """Why the last use failed; None if it worked or there was none."""
        self.is_used = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        try:
            vectors = self._inner.embed(texts)
        except ZibaldoneError as error:
            self.problem = error.message
            raise
        except Exception as problem:
            self.problem = f"The embedding model failed ({type(problem).__name__})."
            raise
        finally:
            self.is_used = True
        self.problem = None
        return vectors

    def language_trust(self, text: str) -> float:
        return self._inner.language_trust(text)

    def close(self) -> None:
        self._inner.close()

"""Models whose files are part of an installed package.

Every model embeds each text alone, so that its vector does not depend on the rest of a batch.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from zibaldone.embed.port import Vectors
from zibaldone.errors import EmbeddingFailed, NotConfigured, ZibaldoneError
from zibaldone.model.vector import np

Loaded = TypeVar("Loaded")


class PackagedModel(ABC, Generic[Loaded]):
    """Loads its files once, on first use, after checking that they are the published ones."""

    packages: ClassVar[tuple[str, ...]]
    """Packages it needs; the first one contains the files."""
    files: ClassVar[Mapping[str, str]]
    """File name → SHA-256."""
    how_to_get: ClassVar[str]

    name: ClassVar[str]
    dimensions: ClassVar[int]
    identity: ClassVar[str]
    similarity_min: ClassVar[float]

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: Loaded | None = None

    @abstractmethod
    def _read(self, files: dict[str, Path]) -> Loaded:
        """Load the model from its files."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Iterable[Vectors]:
        """A unit vector for each text, in order."""

    @abstractmethod
    def language_trust(self, text: str) -> float: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        try:
            return np.stack(list(self._vectors(texts)))
        except ZibaldoneError:
            raise
        except Exception as problem:
            raise EmbeddingFailed(f"{self.name} could not embed a text: {problem}") from problem

    def close(self) -> None:
        """There is nothing to give back, unless a model says otherwise."""

    def _load(self) -> Loaded:
        with self._loading:
            if self._loaded is None:
                package, *_ = self.packages
                self._loaded = self._read(
                    published_files(package, self.files, how_to_get=self.how_to_get)
                )
            return self._loaded


def published_files(
    package: str, sha256_of: Mapping[str, str], *, how_to_get: str
) -> dict[str, Path]:
    """The paths of the package's files by name; NotConfigured unless each has the right hash.

    A different file would give other vectors than those stored for this model.
    """
    folder = _folder(package)
    if folder is None:
        raise NotConfigured(
            "The embedding model is not installed; keyword search works without it. " + how_to_get
        )
    return {name: _published(folder / name, sha256) for name, sha256 in sha256_of.items()}


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _published(file: Path, sha256: str) -> Path:
    try:
        with file.open("rb") as content:
            is_published = hashlib.file_digest(content, "sha256").hexdigest() == sha256
    except OSError:
        is_published = False
    if not is_published:
        raise NotConfigured(
            f"{file.name} of the embedding model is damaged or of another version. Reinstall it."
        )
    return file

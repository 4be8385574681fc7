"""Models whose files are part of a package: of this environment, or of an installed model.

Every model embeds each text alone, so that its vector does not depend on the rest of a batch.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from zibaldone.embed.port import Vectors
from zibaldone.errors import EmbeddingFailed, NotConfigured, ZibaldoneError
from zibaldone.model.vector import np

Loaded = TypeVar("Loaded")


class PackagedModel(ABC, Generic[Loaded]):
    """Loads its files once, on first use, after checking that they are the published ones."""

    kind: ClassVar[str]
    """Its name in the settings."""
    packages: ClassVar[tuple[str, ...]]
    """Packages it needs; the first one contains the files."""
    files: ClassVar[Mapping[str, str]]
    """File name → SHA-256."""
    carrier: ClassVar[str]
    """The published package that its files are taken from."""
    libraries: ClassVar[Mapping[str, str]]
    """Those of the packages that are libraries → what pip is asked for."""

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
                self._loaded = self._read(published_files(package, self.files, self.kind))
            return self._loaded


def install_command(kind: str) -> str:
    return f"zibaldone model install {kind}"


def library(kind: str, module: str) -> Any:
    """A library of a model, imported; NotConfigured, with what to do, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        command = install_command(kind)
        raise NotConfigured(
            f"The library {module} is not installed. To install the model: {command}",
            library=module,
            install=command,
        ) from error


def published_files(package: str, sha256_of: Mapping[str, str], kind: str) -> dict[str, Path]:
    """The paths of the package's files by name; NotConfigured unless each has the right hash.

    A different file would give other vectors than those stored for this model.
    """
    folder = _folder(package)
    if folder is None:
        raise NotConfigured(
            "The embedding model is not installed; keyword search works without it. To install it: "
            + install_command(kind)
        )
    return {name: _published(folder / name, sha256, kind) for name, sha256 in sha256_of.items()}


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _published(file: Path, sha256: str, kind: str) -> Path:
    if not is_published(file, sha256):
        raise NotConfigured(
            f"{file.name} of the embedding model is damaged or of another version. Reinstall it: "
            + install_command(kind)
        )
    return file


def is_published(file: Path, sha256: str) -> bool:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == sha256
    except OSError:
        return False

"""Models whose files lie in an installed package: is it there, and is it what was published?"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path

from commonplace.errors import NotConfigured


def missing(packages: Iterable[str]) -> list[str]:
    """Those that are not installed. Looks for them without importing any."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def published_files(
    package: str, sha256_of: Mapping[str, str], *, how_to_get: str
) -> dict[str, Path]:
    """Where the package's files are, by the names they were asked for, each with the right hash.

    A file that differs would give other vectors than those that are stored under this model.
    """
    folder = _folder(package)
    if folder is None:
        raise NotConfigured(
            "The embedding model is not installed; keyword search works without. " + how_to_get
        )
    return {name: _published(folder / name, sha256) for name, sha256 in sha256_of.items()}


def _folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _published(file: Path, sha256: str) -> Path:
    try:
        with file.open("rb") as content:
            is_right = hashlib.file_digest(content, "sha256").hexdigest() == sha256
    except OSError:
        is_right = False
    if not is_right:
        raise NotConfigured(f"The embedding model's {file.name} is not the one that was published.")
    return file

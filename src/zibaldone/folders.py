"""Folders of our own data: only their owner may look into them."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make the folder and its missing parents, each 0700 (`mkdir` does so for the last one only).

    Durably: a file is no safer than the entries that lead to it.
    """
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(exist_ok=True, mode=0o700)
    if os.name == "posix":
        descriptor = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

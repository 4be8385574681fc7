"""The libraries of the `ingest` extra: optional, so imported when a file first needs one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from zibaldone.errors import NotConfigured

INSTALL_COMMAND = "pip install 'zibaldone[ingest]'"


def ingest_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise NotConfigured(
            f"This needs the library {name}, which is not installed: {INSTALL_COMMAND}",
            library=name,
            install=INSTALL_COMMAND,
        ) from error

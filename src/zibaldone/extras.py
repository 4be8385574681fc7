"""Optional libraries, each part of an extra (`pip install 'zibaldone[ingest]'`).

They are imported when they are first used, and only through `require`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zibaldone.errors import NotConfigured


def require(extra: str, module: str) -> Any:
    """The module, imported; NotConfigured, with the command that installs it, if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        command = install_command(extra)
        raise NotConfigured(
            f"The library {module} is not installed. To install it: {command}",
            library=module,
            install=command,
        ) from error


def install_command(extra: str) -> str:
    """What adds an extra to this installation: its environment may be one of pipx or uv."""
    wanted = f"'zibaldone[{extra}]'"
    folders = Path(sys.prefix).parts
    if "pipx" in folders:
        return f"pipx inject zibaldone {wanted}"
    if "uv" in folders and "tools" in folders:
        return f"uv tool install --with {wanted} zibaldone"
    if any(folder.startswith("archive-v") for folder in folders):  # uvx's cache
        return f"uvx --from {wanted} zibaldone"
    return f"pip install {wanted}"


def missing(modules: Iterable[str]) -> list[str]:
    """Those of the top-level modules that are not installed; imports none of them."""
    return [module for module in modules if importlib.util.find_spec(module) is None]

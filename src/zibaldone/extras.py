"""Optional libraries, each part of an extra (`pip install 'zibaldone[ingest]'`).

They are imported when they are first used, and only through `require`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
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
    return f"pip install 'zibaldone[{extra}]'"


def missing(modules: Iterable[str]) -> list[str]:
    """Those of the top-level modules that are not installed; imports none of them."""
    return [module for module in modules if importlib.util.find_spec(module) is None]

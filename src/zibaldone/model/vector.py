"""Vectors, as they are handed around: rows of float32, each of unit length.

numpy is taken from here. It is loaded by the first use, not by the first import: a command that
writes or lists, and a server before its first search by meaning, start sooner without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Vectors", "np"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            attribute = getattr(importlib.import_module("numpy"), name)
            setattr(self, name, attribute)  # from now on as quick as the module itself
            return attribute

    np = _Numpy()
    Vectors = Any

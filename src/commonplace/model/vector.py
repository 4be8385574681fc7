"""Vectors, as they are handed around: rows of float32, each of unit length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

"""Types of arrays, by what they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["BoolArray", "Float32Array", "FloatArray", "IntArray"]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

"""Values that strict JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["finite", "finite_list"]


def finite(value: Any) -> Any:  # noqa: ANN401 - any plain value
    """Return plain values with None for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [finite(item) for item in value]
    return value


def finite_list(array: npt.NDArray[np.float64]) -> list[Any]:
    """Return an array as nested lists, with None for numbers that are not finite."""
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return list(plain.tolist())

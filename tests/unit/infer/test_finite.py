"""NaN is refused with its place and a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, require_finite


def test_places_are_counted():
    require_finite(np.ones((2, 2)), "ranks", remedy="drop them")
    with pytest.raises(DataError, match=r"nan in row 1 \(2 such values\); drop them"):
        require_finite(np.array([1, np.nan, np.nan]), "ranks", remedy="drop them")

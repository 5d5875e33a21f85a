"""NaN is refused alike wherever numbers come in."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.settings import require_finite
from rag_sourcebias.style.measure import (
    length_adjusted,
    null_unfairness,
    summarise_unfairness,
    unfairness,
    unfairness_score,
)


def bad(value):
    table = np.tile([1.0, 2.0, 3.0], (30, 1))
    table[4, 1] = value
    return table


CALLS = {
    "null": null_unfairness,
    "unfairness": unfairness,
    "score": unfairness_score,
    "summary": summarise_unfairness,
    "length": lambda t: length_adjusted(t, np.ones((30, 3))),
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", CALLS)
def test_nan_is_refused_with_its_place_and_a_remedy(name, value):
    place = "row 4, column 1"
    with pytest.raises(DataError, match=rf"hold NaN or infinity: {value} in {place}; \w+ \w+"):
        CALLS[name](bad(value))


def test_places_are_counted():
    require_finite(np.ones((2, 2)), "ranks", remedy="drop them")
    with pytest.raises(DataError, match=r"nan in row 1 \(2 such values\); drop them"):
        require_finite(np.array([1, np.nan, np.nan]), "ranks", remedy="drop them")

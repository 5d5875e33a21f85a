"""NaN is refused alike wherever numbers come in."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.answers.spread import spread_interval
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.settings import require_finite
from rag_sourcebias.infer.equivalence import noninferiority_test
from rag_sourcebias.infer.resampling import bootstrap_means, dirichlet_sums
from rag_sourcebias.style.measure import (
    length_adjusted,
    null_unfairness,
    summarise_unfairness,
    unfairness,
    unfairness_score,
)
from rag_sourcebias.style.ranks import compare_ranks, friedman_test


def bad(value):
    table = np.tile([1.0, 2.0, 3.0], (30, 1))
    table[4, 1] = value
    return table


CALLS = {
    "friedman": friedman_test,
    "pairs": lambda t: compare_ranks(t, ["a", "b", "c"]),
    "spread": spread_interval,
    "bootstrap": lambda t: bootstrap_means(t, resamples=10, rng=0),
    "dirichlet": lambda t: dirichlet_sums(t, resamples=10, rng=0),
    "null": null_unfairness,
    "unfairness": unfairness,
    "score": unfairness_score,
    "summary": summarise_unfairness,
    "length": lambda t: length_adjusted(t, np.ones((30, 3))),
    "non-inferiority": lambda t: noninferiority_test(t.T / 4, np.ones((3, 30)) / 2),
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", CALLS)
def test_nan_is_refused_with_its_place_and_a_remedy(name, value):
    place = "row 1, column 4" if name == "non-inferiority" else "row 4, column 1"
    with pytest.raises(DataError, match=rf"hold NaN or infinity: {value} in {place}; \w+ \w+"):
        CALLS[name](bad(value))


def test_places_are_counted():
    require_finite(np.ones((2, 2)), "ranks", remedy="drop them")
    with pytest.raises(DataError, match=r"nan in row 1 \(2 such values\); drop them"):
        require_finite(np.array([1, np.nan, np.nan]), "ranks", remedy="drop them")

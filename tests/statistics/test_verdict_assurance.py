"""A study of the size that an undecided one asks for reaches a verdict as often as promised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t
from simulation import acceptable

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import SkewCode, queries_for_verdict, skew_code

pytestmark = pytest.mark.slow
RUNS, MARGIN, SD = 800, 5.0, 75.0  # 75 points a query are those of NDCG@5 on 80 questions


def study(truth, n, rng):
    """Decide on a simulated mean of n queries with a t interval."""
    estimate = truth + rng.normal() * SD / np.sqrt(n)
    error = SD * np.sqrt(rng.chisquare(n - 1) / (n - 1) / n)
    width = t.ppf(0.975, n - 1) * error
    interval = Interval(
        estimate=estimate,
        lower=estimate - width,
        upper=estimate + width,
        confidence_level=0.95,
        method=InferCode.T(),
        n_labeled=n,
        assumptions=(),
    )
    code = skew_code(interval, 2 * t.sf(abs(estimate) / error, n - 1), margin=MARGIN)
    return interval, code is not SkewCode.CANNOT_TELL


def decided(n, *, share=1.0):
    """Share of later studies with a verdict, where the pilot had none.

    Truths are spread evenly over ±60 points: the promise is one over what the pilot leaves open.
    Where the truth is exactly 0, pilots of 20, 80 and 300 queries reach .11, .54 and .86.
    """
    rng = np.random.default_rng(n)
    asked = reached = 0
    while asked < RUNS:
        truth = rng.uniform(-60, 60)
        interval, done = study(truth, n, rng)
        if done:
            continue
        needed = queries_for_verdict(interval, margin=MARGIN)
        assert needed is not None
        asked += 1
        reached += study(truth, max(int(share * needed), 2), rng)[1]
    return reached / asked


@pytest.mark.parametrize("n", [20, 80, 300])
def test_the_size_asked_for_is_enough(n):
    """At least .75 on average, so .8 is no empty promise."""
    assert decided(n) >= acceptable(0.75, RUNS)


def test_a_quarter_of_it_would_fail():
    assert decided(80, share=0.25) < acceptable(0.75, RUNS)

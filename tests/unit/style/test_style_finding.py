"""The verdict on styles: its precedence, its bound and its plan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.style.data import StyleCode
from rag_sourcebias.style.measure import compare_ranks, friedman_test, style_finding

NAMES = "abcdefghij"


def ranks_of(n, shifts, seed=0):
    scores = np.random.default_rng(seed).normal(size=(n, len(shifts))) + np.asarray(shifts)
    return stats.rankdata(-scores, axis=1)


def decide(ranks, *, margin=0.1, level=0.95, **changes):
    names = NAMES[: ranks.shape[1]]
    against = compare_ranks(ranks, names, "a", resamples=500)
    return style_finding(
        ranks,
        names,
        test=friedman_test(ranks),
        against_original=against,
        margin=margin,
        confidence_level=level,
        **changes,
    )


def test_a_style_that_ranks_higher_is_named():
    found = decide(ranks_of(80, (0, 1.5, 0, -1.5)))
    assert found.code is StyleCode.FAVOURS
    assert (found.best, found.worst) == ("b", "d")
    assert (found.favoured, found.silenced, found.n_needed) == (("b",), ("d",), None)
    assert found.apart < found.apart_at_most


def test_within_the_margin_styles_are_alike_however_significant():
    ranks = ranks_of(6000, (0, 0.06, 0))
    assert friedman_test(ranks).p_value < 0.05
    found = decide(ranks)
    assert found.code is StyleCode.ALIKE
    assert found.apart_at_most <= found.margin == pytest.approx(0.2)
    assert (found.favoured, found.silenced) == ((), ())
    # The same ranks, asked for more than they carry.
    assert decide(ranks, margin=0.02).code is StyleCode.FAVOURS


@pytest.mark.parametrize(("n", "level", "needed"), [(5, 0.95, 6), (6, 0.99, 8)])
def test_too_few_queries_for_any_verdict(n, level, needed):
    found = decide(np.tile([1.0, 2.0, 3.0], (n, 1)), level=level)
    assert (found.code, found.n_needed) == (StyleCode.TOO_FEW, needed)
    ranks = np.tile([1.0, 2.0, 3.0], (needed, 1))
    assert decide(ranks, level=level).code is StyleCode.FAVOURS


def test_ties_everywhere():
    assert decide(np.full((30, 3), 2.0)).code is StyleCode.TIED


def test_the_bound_is_that_of_clopper_and_pearson_for_two_styles():
    ranks = np.array([[1.0, 2.0]] * 30 + [[2.0, 1.0]] * 20)
    found = decide(ranks, margin=0.9)
    share = stats.beta.ppf(0.95, 31, 20)
    assert found.apart_at_most == pytest.approx(2 * share - 1, abs=0.02)


@pytest.mark.parametrize("shifts", [(0, 0, 0), (0, 0.5, 0), (0, 0.2)])
def test_most_plans_lead_to_a_verdict(shifts):
    """Pilots of 20 queries that cannot tell, each followed by as many queries as it asks for."""
    plans = []
    for seed in range(60):
        pilot = decide(ranks_of(20, shifts, seed), rng=seed)
        if pilot.code is StyleCode.CANNOT_TELL:
            plans.append((seed, pilot.n_needed))
    told = [
        decide(ranks_of(n, shifts, 1000 + seed), rng=seed).code is not StyleCode.CANNOT_TELL
        for seed, n in plans
    ]
    assert len(plans) > 20
    # Plans are made for what the pilot leaves plausible: where styles are alike, which few pilots
    # can show, .6 to .7 of them are enough; where they differ, .75 to 1.
    assert np.mean(told) > 0.5

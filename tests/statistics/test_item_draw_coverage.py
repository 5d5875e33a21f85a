"""Items drawn within strata of their judge value: coverage, and width against a random draw.

Each run draws fresh items from a world with a known mean. An interval that takes the drawn items
for a random sample is the control: it must miss.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulation import acceptable

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.stats.means import mean_interval
from rag_sourcebias.stats.strata import draw_items

pytestmark = pytest.mark.slow
RUNS = 1000
BOUND = acceptable(0.94, RUNS)


def rare(rng):
    """Nine of ten are right by the judge, of those nearly all; of the rest, half."""
    f = (rng.random(530) < 0.9).astype(float)
    return (rng.random(530) < np.where(f == 1, 0.97, 0.5)).astype(float), f, 0.9 * 0.97 + 0.05


def curved(rng):
    """People's grades grow faster than the judge's, and spread more."""
    f = rng.random(530)
    return f**3 + f * rng.normal(0, 0.3, 530), f, 0.25


def failing(rng):
    """The judge gives no value to one item of eight, and to other items than at random."""
    y, f, _ = curved(rng)
    lost = rng.random(530) < 0.125
    return np.where(lost, y + 1, y), np.where(lost, np.nan, f), 0.375


def study(world, n, seed):
    """Coverage of the design and of the control, and the width against a random draw."""
    rng = np.random.default_rng(seed)
    ids = tuple(map(str, range(530)))
    hits = np.zeros(2)
    widths = np.zeros(2)
    for _ in range(RUNS):
        y, judge, truth = world(rng)
        items = JudgedItems(ids=ids, human=np.full(530, np.nan), judge=judge)
        drawn = draw_items(items, n, rng=rng)
        f = np.where(np.isnan(judge), np.nanmean(judge), judge)
        labeled = np.zeros(530, dtype=bool)
        labeled[drawn.rows] = True
        stratum = drawn.strata.stratum
        strata = {"strata": stratum[labeled], "strata_unlabeled": stratum[~labeled]}
        parts = (y[labeled], f[labeled], f[~labeled])
        found = mean_interval(*parts, **strata)
        plain = mean_interval(y[labeled], np.zeros(n), np.zeros(530 - n))
        random = mean_interval(y[:n], f[:n], f[n:])
        hits += [i.lower <= truth <= i.upper for i in (found, plain)]
        widths += [found.half_width, random.half_width]
    return *(hits / RUNS), widths[0] / widths[1]


# Of a random draw of as many labels, rounded up by no more than the error of 1,000 runs.
WIDTH = {
    rare: {15: 1.03, 30: 1.03, 60: 0.98},
    curved: {15: 1.0, 30: 0.95, 60: 0.93},
    failing: {15: 0.6, 30: 0.6, 60: 0.62},
}


@pytest.mark.parametrize("n", [15, 30, 60])
@pytest.mark.parametrize("world", [rare, curved, failing])
def test_the_design_covers(world, n):
    covered, _, width = study(world, n, [3, n])
    assert covered >= BOUND
    # A random draw of a judge's two values is put together from its shares as well: what is left
    # to gain is the allocation, and with few labels that is nothing.
    assert width < WIDTH[world][n]


def test_without_the_design_the_interval_misses():
    assert study(rare, 60, 4)[1] < acceptable(0.94, RUNS) - 0.1

"""Critical λ against a search over λ, and the recalibration."""

from __future__ import annotations

import numpy as np
import pytest
from crc_oracles import TIE, awkward_labels, utilities_literally
from hypothesis import given
from hypothesis import strategies as st

from rag_sourcebias.judged.crc import (
    INSIDE,
    RankedLabels,
    crossings,
    recalibration,
)

GRID = np.concatenate([np.linspace(-1, 1, 801), [-1 + 1e-5, 1 - 1e-5]])
GRID.sort()


def one_document(*p, gains=(0.0, 1.0, 3.0)):
    return RankedLabels.from_grid(np.array([[p]]), np.ones(1), np.array(gains))


@pytest.mark.parametrize("seed", range(40))
def test_equals_a_search_over_lambda(seed):
    labels, y = awkward_labels(seed)
    first, last = crossings(labels, y)
    values = np.array([utilities_literally(labels, lam) for lam in GRID])
    for i in range(labels.n_queries):
        reached = np.flatnonzero(values[:, i] >= y[i] - TIE)
        # the answer lies between the last λ of the grid that fails and the first that holds
        if len(reached):
            before = GRID[reached[0] - 1] if reached[0] else -1.0
            assert before - 1e-9 <= first[i] <= GRID[reached[0]] + 1e-9
        else:
            assert first[i] == 1.0
        within = np.flatnonzero(values[:, i] <= y[i] + TIE)
        if len(within):
            after = GRID[within[-1] + 1] if within[-1] + 1 < len(GRID) else 1.0
            assert GRID[within[-1]] - 1e-9 <= last[i] <= after + 1e-9
        else:
            assert last[i] == -1.0


@given(st.integers(0, 100_000))
def test_bounds_hold_where_they_are_said_to(seed):
    labels, y = awkward_labels(seed)
    first, last = crossings(labels, y)
    at = labels.utilities_at
    for i in np.flatnonzero((at(-1.0) - TIE <= y) & (y <= at(1.0) + TIE)):
        assert at(float(first[i]))[i] >= y[i] - 3 * TIE
        assert at(float(last[i]))[i] <= y[i] + 3 * TIE


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (1.0, (-INSIDE, INSIDE)),
        (0.0, (-1.0, -1.0)),
        (0.5, (-INSIDE, -1.0)),
        (2.0, (1.0, INSIDE)),
        (3.0, (1.0, 1.0)),
        (4.0, (1.0, 1.0)),
        (-1.0, (-1.0, -1.0)),
    ],
)
def test_jumps_at_the_ends(y, expected):
    first, last = crossings(one_document(0.0, 1.0, 0.0), np.array([y]))
    assert (first[0], last[0]) == expected


@given(st.integers(0, 100_000))
def test_recalibration_is_nearest_zero_among_the_best(seed):
    labels, y = awkward_labels(seed)
    lam = recalibration(labels, y)
    assert -1 < lam < 1

    def error(at):
        return abs(float((labels.utilities_at(at) - y).sum()))

    best = min(error(-INSIDE), error(lam), error(INSIDE))
    assert error(lam) <= best + 1e-8
    if abs(lam) > 1e-6:
        assert error(lam * 0.999) > error(lam)

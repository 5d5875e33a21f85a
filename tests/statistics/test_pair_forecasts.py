"""How many pairs a refused fit asks for is enough, in populations of known dependence."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import acceptable

from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.debias.parity import ScoredTwins, fit_parity
from rag_sourcebias.debias.projection import fit_projection

pytestmark = pytest.mark.slow
RUNS = 200
Rng = np.random.Generator


def twins(rng: Rng, n_queries: int, *, per_query: int, heavy: bool) -> ScoredTwins:
    """Gaps that depend on the query."""
    effect = rng.standard_t(3, n_queries) if heavy else rng.normal(size=n_queries)
    queries = np.repeat(np.arange(n_queries), per_query)
    gaps = 0.6 * effect[queries] + rng.normal(size=len(queries))
    return ScoredTwins(
        source="llm:x", baseline_scores=gaps, source_scores=0 * gaps, queries=queries
    )


def needed_of(fit) -> int | None:
    """Pairs that are asked for; 0 where those there are enough."""
    try:
        fit()
    except InsufficientDataError as error:
        return error.n_needed
    return 0


def calibrations(n_queries: int, *, share: float = 1.0, heavy: bool = False) -> tuple[int, int]:
    """How many of those that were asked for more pairs are satisfied with so many."""
    rng, reached, asked, each = np.random.default_rng(n_queries), 0, 0, 6
    for _ in range(RUNS):
        pilot = twins(rng, n_queries, per_query=each, heavy=heavy)
        needed = needed_of(lambda pilot=pilot: fit_parity([pilot], encoder="e"))
        if needed:
            asked += 1
            later = max(-(-int(share * needed) // each), 10)
            more = twins(rng, later, per_query=each, heavy=heavy)
            reached += needed_of(lambda more=more: fit_parity([more], encoder="e")) == 0
    return reached, asked


@pytest.mark.parametrize(("n_queries", "heavy"), [(12, False), (40, False), (40, True)])
def test_the_pairs_a_calibration_asks_for_are_enough(n_queries: int, heavy: bool) -> None:
    reached, asked = calibrations(n_queries, heavy=heavy)
    assert asked > RUNS / 2
    assert reached / asked >= acceptable(0.75, asked)


def test_half_of_them_would_not_be() -> None:
    reached, asked = calibrations(40, share=0.5)
    assert reached / asked < acceptable(0.75, asked)


def projections(n: int, shift: float, *, share: float = 1.0) -> tuple[int, int]:
    rng, reached, asked = np.random.default_rng(n), 0, 0
    for _ in range(RUNS):
        human = rng.normal(size=(6_000, 48))
        other = human + 0.5 * rng.normal(size=human.shape)
        other[:, 0] += shift

        def fitted(n: int, human=human, other=other) -> int | None:
            return needed_of(lambda: fit_projection(human[:n], other[:n], method="mean"))

        needed = fitted(n)
        if needed and needed <= len(human):  # the pilot's pairs are among them
            asked += 1
            reached += fitted(max(int(share * needed), n)) == 0
    return reached, asked


@pytest.mark.parametrize(("n", "shift"), [(24, 0.4), (60, 0.3), (120, 0.2)])
def test_the_pairs_a_projection_asks_for_are_enough(n: int, shift: float) -> None:
    reached, asked = projections(n, shift)
    assert asked >= 30
    assert reached / asked >= acceptable(0.75, asked)


def test_a_fifth_of_them_would_not_be() -> None:
    reached, asked = projections(120, 0.2, share=0.2)
    assert reached / asked < acceptable(0.75, asked)


def test_where_nothing_differs_no_number_is_promised() -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=(60, 48))
    other = human + 0.5 * rng.normal(size=human.shape)
    with pytest.raises(InsufficientDataError, match="cannot be told") as caught:
        fit_projection(human, other, method="mean")
    assert caught.value.n_needed is None

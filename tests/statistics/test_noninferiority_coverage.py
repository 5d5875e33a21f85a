"""The tests of a debias search err as rarely as they say, and its intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.debias.data import DebiasPoint
from rag_sourcebias.debias.search import relative_delta_over_seeds, zero_crossing
from rag_sourcebias.infer.equivalence import noninferiority_test

pytestmark = pytest.mark.slow
MARGIN, LEVEL = 0.02, 0.05


def effects(
    rng: np.random.Generator, seeds: int, n: int, *, query: float, seed: float, rest: float
):
    return (
        query * rng.normal(size=n)
        + seed * rng.normal(size=(seeds, 1))
        + rest * rng.normal(size=(seeds, n))
    )


@pytest.mark.parametrize(
    ("n", "seeds", "seed_sd"), [(80, 1, 0.0), (80, 3, 0.0), (80, 3, 0.004), (300, 3, 0.01)]
)
def test_a_loss_of_the_margin_passes_at_most_as_often_as_the_level(n, seeds, seed_sd) -> None:
    rng, runs = np.random.default_rng(n + seeds), 300
    passed = 0
    for _ in range(runs):
        before = np.tile(rng.uniform(0.3, 0.9, n), (seeds, 1))
        noise = effects(rng, seeds, n, query=0.03, seed=seed_sd, rest=0.03)
        after = (1 - MARGIN) * before + noise
        passed += noninferiority_test(after, before, relative_margin=MARGIN).passed
    assert 1 - passed / runs >= acceptable(1 - LEVEL, runs)


@pytest.mark.parametrize("loss", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("n", [80, 400])
def test_rare_losses_of_the_margin_do_not_pass_unseen(n: int, loss: float) -> None:
    # The mean loss is the margin, carried by few queries: the fewer, the larger each loss.
    rng, runs = np.random.default_rng(n), 200
    passed = 0
    for _ in range(runs):
        before = np.full((1, n), 0.8)
        hit = rng.random((1, n)) < MARGIN * 0.8 / loss
        passed += noninferiority_test(before - loss * hit, before, relative_margin=MARGIN).passed
    assert 1 - passed / runs >= acceptable(1 - LEVEL, runs)


@pytest.mark.parametrize(
    ("n", "seeds", "seed_sd"), [(80, 3, 0.0), (80, 3, 0.02), (300, 3, 0.06), (80, 5, 0.04)]
)
def test_relative_delta_covers_over_new_queries_and_seeds(n, seeds, seed_sd) -> None:
    rng, runs = np.random.default_rng(n + seeds), 600
    hits = 0
    for _ in range(runs):
        human, llm = drawn(rng, tilt=-0.1, n=n, seeds=seeds, seed_sd=seed_sd)
        hits += not relative_delta_over_seeds(human, llm, confidence_level=0.95).excludes(-20.0)
    assert hits / runs >= acceptable(FLOOR, runs)


def test_zero_crossing_covers() -> None:
    rng, runs = np.random.default_rng(5), 400
    tilts = {0.0: -0.08, 0.1: -0.03, 0.2: 0.05, 0.3: 0.12}
    hits = 0
    for _ in range(runs):
        crossing = zero_crossing([on_curve(rng, w, tilt) for w, tilt in tilts.items()], target=0.0)
        hits += crossing is not None and not crossing.excludes(0.1 + 0.1 * 0.03 / 0.08)
    assert hits / runs >= acceptable(FLOOR, runs)


def on_curve(rng, weight: float, tilt: float) -> DebiasPoint:
    human, llm = drawn(rng, tilt=tilt, n=100, seeds=3, seed_sd=0.01)
    delta = relative_delta_over_seeds(human, llm, confidence_level=0.95)
    return DebiasPoint(
        weight=weight,
        relative_delta=delta,
        human_only=delta,
        llm_only=delta,
        mixed=delta,
    )


def drawn(rng, *, tilt: float, n: int, seeds: int, seed_sd: float):
    """Scores of both sources with means 0.5 ± tilt / 2, so that Relative Δ is 200 · tilt."""
    shared = rng.uniform(-0.2, 0.2, n)
    gap = effects(rng, seeds, n, query=0.05, seed=seed_sd, rest=0.03)
    return (
        np.clip(0.5 + shared + (tilt + gap) / 2, 0, 1),
        np.clip(0.5 + shared - (tilt + gap) / 2, 0, 1),
    )

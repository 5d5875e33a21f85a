"""The curves of ``benchmarks/debias``, which ``benchmarks/reproduce`` reads."""

from __future__ import annotations

import numpy as np
import pytest
from debias_benchmark import load

from rag_sourcebias.debias.data import DebiasScores

CUTOFFS = (1, 3, 5, 10)
N = 60


curves = load("curves")


def scores(human: float, llm: float, quality: float, *, seed: int) -> DebiasScores:
    """Scores around these means; the rows of quality are exactly ``quality``."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-0.05, 0.05, (2, len(CUTOFFS), N))
    noise -= noise.mean(axis=-1, keepdims=True)
    values = np.full((5, len(CUTOFFS), N), quality)
    values[:2] = np.array([human, llm])[:, None, None] + noise
    return DebiasScores(
        name="x", query_ids=tuple(map(str, range(N))), cutoffs=CUTOFFS, values=values
    )


def runs(seeds: range, weights=(0.0, 0.1, 1.0)):
    means = {0.0: (0.4, 0.5, 0.6), 0.1: (0.45, 0.45, 0.6), 1.0: (0.6, 0.3, 0.5)}
    return {w: {s: scores(*means[w], seed=s) for s in seeds} for w in weights}


def columns(found) -> dict:
    return {
        name: column for cutoff in (5, 10) for name, column in curves.series(found, cutoff).items()
    }


def test_three_seeds_give_intervals() -> None:
    found = columns(runs(range(3)))
    delta = found["relative_delta@5"]
    assert delta["x"] == [0.0, 0.1, 1.0]
    assert delta["y"] == pytest.approx([-22.2222, 0.0, 66.6667], abs=1e-3)
    assert delta["lower"][0] < delta["y"][0] < delta["upper"][0] < 0
    assert delta["lower"][1] < 0 < delta["upper"][1]
    assert found["human-only@10"]["y"] == pytest.approx([60, 60, 50])
    assert delta["note"] == "3 seeds"
    assert len(delta["by_seed"]) == 3


def test_too_few_weights_draw_no_curve() -> None:
    assert columns(runs(range(3), weights=(0.0, 0.1))) == {}
    assert columns({}) == {}

"""Perplexity correction: the two-stage slope, its interval, and refusals."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.means import t_quantile

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "reproduce"))
correction = importlib.import_module("perplexity_correction")
sys.path.pop(0)


def columns(n: int = 300, *, gap: float = -0.4, slope: float = -0.1, seed: int = 0) -> Any:
    """Scores fall by ``slope`` per unit of perplexity; worth confounds both."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(0, 1, n)
    human = 3 + 0.5 * worth + rng.normal(0, 0.3, n)
    llm = human + gap + rng.normal(0, 0.3, n)
    return {
        "baseline_perplexities": human,
        "source_perplexities": llm,
        "baseline_scores": 0.5 + 0.3 * worth + slope * human + rng.normal(0, 0.05, n),
        "source_scores": 0.5 + 0.3 * worth + slope * llm + rng.normal(0, 0.05, n),
        "queries": np.arange(n) // 2,
    }


def fitted(data: dict[str, Any], **options: Any) -> Any:
    return correction.fit_perplexity_correction(
        **data, encoder="e1", perplexity_model="m1", **options
    )


def two_stages(data: dict[str, Any]) -> float:
    """The definition: perplexity on source, then score on the perplexity predicted from it."""
    source = np.repeat([0.0, 1.0], len(data["queries"]))
    perplexity = np.concatenate([data["baseline_perplexities"], data["source_perplexities"]])
    score = np.concatenate([data["baseline_scores"], data["source_scores"]])
    first = np.polyfit(source, perplexity, 1)
    return float(np.polyfit(np.polyval(first, source), score, 1)[0])


def test_the_slope_is_that_of_two_regressions_and_finds_the_cause() -> None:
    data = columns(3000)
    found = fitted(data)
    assert found.slope.estimate == pytest.approx(two_stages(data))
    assert found.slope.lower < -0.1 < found.slope.upper
    assert found.slope.upper - found.slope.lower < 0.03
    naive = np.polyfit(data["baseline_perplexities"], data["baseline_scores"], 1)[0]
    assert naive > 0.2  # one regression takes worth for an effect of perplexity
    assert found.reference == pytest.approx(data["baseline_perplexities"].mean())
    assert (found.n_pairs, found.slope.n_labeled, found.encoder) == (3000, 1500, "e1")


def test_the_interval_holds_the_slopes_that_a_t_test_does_not_reject() -> None:
    data = columns(60, gap=-0.2)
    found = fitted(data)
    scores = data["source_scores"] - data["baseline_scores"]
    perplexities = data["source_perplexities"] - data["baseline_perplexities"]

    def t_statistic(slope: float) -> float:  # clustered by query, written out
        rest = scores - slope * perplexities
        sums = [np.sum(rest[data["queries"] == q] - rest.mean()) for q in range(30)]
        return rest.mean() / (math.sqrt(30 / 29 * np.sum(np.square(sums))) / 60)

    for end in (found.slope.lower, found.slope.upper):
        assert abs(t_statistic(end)) == pytest.approx(t_quantile(0.975, 29), rel=1e-9)
    assert abs(t_statistic(found.slope.estimate)) < 1e-9


def test_the_interval_covers_the_slope_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(400):
        found = fitted(columns(60, gap=-0.35, seed=seed), confidence_level=0.9).slope
        covered += found.lower <= -0.1 <= found.upper
    assert 0.86 <= covered / 400 <= 0.94  # .9 ± 2.7 binomial standard errors


def test_a_weak_instrument_is_refused() -> None:
    data = columns(60, gap=-0.05)
    data["queries"] = np.arange(60)
    gaps = data["source_perplexities"] - data["baseline_perplexities"]
    f = (gaps.mean() / (gaps.std(ddof=1) / math.sqrt(60))) ** 2  # the squared t of the first stage
    assert f < 10
    with pytest.raises(InsufficientDataError, match=f"weak instrument.* F = {f:.3g}"):
        fitted(data)


def test_few_queries_and_unusable_columns_are_refused() -> None:
    data = columns()
    with pytest.raises(InsufficientDataError, match="300 pairs for 9 queries"):
        fitted(data | {"queries": np.arange(300) % 9})
    bad = data["source_perplexities"].copy()
    bad[7] = np.inf
    with pytest.raises(DataError, match="source perplexity inf in pair 7"):
        fitted(data | {"source_perplexities": bad})
    with pytest.raises(DataError, match="expected five of the same length"):
        fitted(data | {"baseline_scores": np.zeros(3)})
    with pytest.raises(DataError):
        fitted(data, confidence_level=1.0)

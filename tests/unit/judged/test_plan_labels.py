from __future__ import annotations

import math

import numpy as np
import pytest
from judged_pools import pool

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.judged.plan import (
    design_document_sample,
    document_interval,
    plan_labels,
)


def pilot_of(y, rows):
    return np.where(np.isin(np.arange(len(y)), rows), y, np.nan)


@pytest.mark.parametrize("target", ["population", "pool"])
@pytest.mark.parametrize("n_labels", [150, 300, 1000])
def test_a_pilot_foretells_the_width(n_labels, target):
    labels, y = pool(n_queries=300, n_docs=10)
    rng = np.random.default_rng(1)
    ratios = []
    for seed in range(20):
        pilot = pilot_of(y, rng.choice(3000, 80, replace=False))
        plan = plan_labels(labels, n_labels=n_labels, target=target, pilot=pilot)
        sample = design_document_sample(labels, n_labels, seed=seed, pilot=pilot)
        got = document_interval(labels, sample, y[sample.rows], target=target)
        ratios.append(plan.half_width / got.half_width)
    assert 0.85 < np.median(ratios) < 1.2


@pytest.mark.parametrize("target", ["population", "pool"])
def test_the_width_asked_for_is_reached_and_no_more(target):
    labels, y = pool(n_queries=300, n_docs=10)
    pilot = pilot_of(y, np.arange(0, 3000, 30))
    plan = plan_labels(labels, half_width=0.9, target=target, pilot=pilot)
    assert plan.half_width <= 0.9 * (1 + 1e-9)
    less = plan_labels(labels, n_labels=plan.n_labels - 1, target=target, pilot=pilot)
    assert less.half_width > 0.9
    assert "from a pilot of 100 labels" in plan.text
    assert 0 < plan.n_labels < plan.n_alone


def test_whole_queries_without_a_judge_follow_the_textbook():
    labels, y = pool(n_queries=2000, n_docs=10)
    whole = np.arange(20_000)  # everything known: no guess left
    plan = plan_labels(labels, n_labels=20_000, target="population", pilot=pilot_of(y, whole[:-1]))
    variance = labels.total(y).var(ddof=1)
    assert plan.half_width == pytest.approx(1.96 * math.sqrt(variance / 2000), rel=0.12)
    assert plan.n_alone == pytest.approx(20_000, rel=0.02)


def test_more_labels_narrower():
    labels, _ = pool(n_queries=300, n_docs=10)
    widths = [plan_labels(labels, n_labels=n).half_width for n in (50, 100, 500, 2000, 3000)]
    assert widths == sorted(widths, reverse=True)
    assert plan_labels(labels, n_labels=3000, target="pool").half_width == 0


def test_refusals():
    labels, y = pool(n_queries=300, n_docs=10)
    for options in ({}, {"half_width": 1, "n_labels": 100}):
        with pytest.raises(DataError, match="either half_width or n_labels"):
            plan_labels(labels, **options)
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(DataError, match="must be a positive number"):
            plan_labels(labels, half_width=wrong)
    with pytest.raises(DataError, match="3001 labels, but only 3000 documents"):
        plan_labels(labels, n_labels=3001)
    with pytest.raises(InsufficientDataError, match="49 labelled documents") as caught:
        plan_labels(labels, n_labels=49)
    assert caught.value.n_needed == 50
    with pytest.raises(InsufficientDataError, match=r"needs about .* queries") as caught:
        plan_labels(labels, half_width=0.05)
    assert caught.value.n == 300
    assert caught.value.n_needed > 10_000
    with pytest.raises(InsufficientDataError, match="pilot of 9 labelled"):
        plan_labels(labels, n_labels=100, pilot=pilot_of(y, np.arange(9)))
    with pytest.raises(InsufficientDataError, match=r"80 of a pilot.* 130 are needed"):
        plan_labels(labels, n_labels=129, pilot=pilot_of(y, np.arange(80)))

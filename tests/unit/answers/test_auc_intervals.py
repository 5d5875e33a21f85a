"""Intervals for the AUC of a correctness score and its change, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.answers.audit import auc_change_interval, auc_interval
from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.findings import InferCode


def single(correct, values):
    """Answers of one system to different questions."""
    n = len(correct)
    return AnswerScores(
        question_ids=tuple(map(str, range(n))),
        systems=("a",) * n,
        scores=np.array(values, dtype=float),
        correct=np.array(correct, dtype=float),
        words=np.full(n, 3),
    )


def delong(good, bad):
    """AUC and its variance by the definition of DeLong et al. (1988), for different questions."""
    above = (np.sign(good[:, None] - bad) + 1) / 2
    n1, n0 = above.shape
    n = n1 + n0
    auc, by_good, by_bad = above.mean(), above.mean(axis=1), above.mean(axis=0)
    # sums of squared deviations over n1² and n0², times n / (n − 1) for all questions together
    variance = np.sum((by_good - auc) ** 2) / n1**2 + np.sum((by_bad - auc) ** 2) / n0**2
    return auc, variance * n / (n - 1), by_good, by_bad


def test_the_auc_has_an_interval_of_delong_in_the_logit() -> None:
    rng = np.random.default_rng(5)
    correct = np.repeat([1, 0], [18, 12])
    values = rng.normal(correct, 1.0)
    found = auc_interval(single(correct, values), confidence_level=0.9)
    auc, variance, *_ = delong(values[:18], values[18:])
    step = stats.t.ppf(0.95, 11) * math.sqrt(variance) / (auc * (1 - auc))
    logit = math.log(auc / (1 - auc))
    assert found.estimate == pytest.approx(auc)
    assert found.lower == pytest.approx(1 / (1 + math.exp(step - logit)))
    assert found.upper == pytest.approx(1 / (1 + math.exp(-step - logit)))
    assert (found.n_labeled, found.method.code) == (30, InferCode.DELONG)


@pytest.mark.parametrize("upside_down", [False, True])
def test_separated_answers_bound_the_auc_by_what_their_pairs_allow(upside_down) -> None:
    """With an AUC at the bound, 7 independent pairs all come out right in 1 of 40 samples."""
    correct = np.repeat([1, 0], [7, 9])
    values = np.arange(16.0) * (1 if upside_down else -1)
    found = auc_interval(single(correct, values))
    bound = 0.025 ** (1 / 7)
    expected = (0.0, 1 - bound) if upside_down else (bound, 1.0)
    assert (found.lower, found.upper) == pytest.approx(expected)


def test_five_pairs_of_questions_are_enough() -> None:
    values = np.arange(12.0)
    assert auc_interval(single(np.repeat([0, 1], [5, 7]), values)).lower > 0
    with pytest.raises(InsufficientDataError, match=r"only 4 pair\(s\)") as error:
        auc_interval(single(np.repeat([0, 1], [4, 8]), values))
    assert (error.value.n, error.value.n_needed) == (4, 5)


def test_the_change_of_the_auc_is_paired_by_question() -> None:
    rng = np.random.default_rng(8)
    correct = np.repeat([1, 0], [14, 16])
    before, after = rng.normal(correct, 2.0), rng.normal(2 * correct, 1.0)
    found = auc_change_interval(
        single(correct, before), single(correct, after), confidence_level=0.9
    )
    (a, _, good_a, bad_a), (b, _, good_b, bad_b) = (
        delong(values[:14], values[14:]) for values in (before, after)
    )
    moved = np.concatenate([(good_b - b - good_a + a) / 14, (bad_b - b - bad_a + a) / 16])
    half = stats.t.ppf(0.95, 13) * math.sqrt(np.sum(moved**2) * 30 / 29)
    assert found.estimate == pytest.approx(b - a)
    assert (found.lower, found.upper) == pytest.approx((b - a - half, b - a + half))

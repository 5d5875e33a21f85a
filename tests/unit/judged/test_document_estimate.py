from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from judged_pools import EYE, GAINS, pool

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import t_quantile
from rag_sourcebias.judged.plan import design_document_sample, document_interval

KINDS = ["doubt", "one hot", "one vote", "constant", "constant one hot", "inverted", "perfect"]


@pytest.mark.parametrize("target", ["population", "pool"])
@pytest.mark.parametrize("n_labels", [50, 300, 597, 600])
@pytest.mark.parametrize("kind", KINDS)
def test_finite_for_every_judge(kind, n_labels, target):
    labels, y = pool(kind)
    sample = design_document_sample(labels, n_labels, seed=0)
    interval = document_interval(labels, sample, y[sample.rows], target=target)
    assert np.isfinite([interval.lower, interval.upper]).all()
    assert interval.target == target
    assert (interval.n_labeled, interval.n_unlabeled) == (n_labels, 600 - n_labels)
    assert abs(interval.estimate - labels.total(y).mean()) < 4 * interval.half_width + 1e-9


@pytest.mark.parametrize("kind", ["perfect", "inverted"])
def test_a_perfect_judge_leaves_no_doubt_about_the_pool(kind):
    # 3 − grade has gains that no line maps to those of the grade: only grades 0 and 3 invert
    labels, y = pool(kind)
    if kind == "inverted":
        y = np.where(y > 1, 7.0, 0.0)
        probs = EYE[np.where(y > 0, 0, 3)]
        labels = replace(labels, probs=probs)
    sample = design_document_sample(labels, 50, seed=1)
    interval = document_interval(labels, sample, y[sample.rows], target="pool")
    assert interval.half_width == 0
    assert interval.estimate == pytest.approx(labels.total(y).mean(), abs=1e-12)
    assert interval.correlation == pytest.approx(1 if kind == "perfect" else -1)


@pytest.mark.parametrize("kind", KINDS)
def test_all_documents_labelled_is_the_classical_interval(kind):
    labels, y = pool(kind)
    sample = design_document_sample(labels, 600, seed=0)
    exact = document_interval(labels, sample, y[sample.rows], target="pool")
    utility = labels.total(y)
    assert exact.half_width == 0
    assert exact.estimate == pytest.approx(utility.mean())
    interval = document_interval(labels, sample, y[sample.rows])
    half = t_quantile(0.975, 59) * utility.std(ddof=1) / np.sqrt(60)
    assert interval.estimate == pytest.approx(utility.mean())
    assert interval.half_width == pytest.approx(half)


def test_equal_to_the_formula_written_out():
    labels, y = pool()
    sample = design_document_sample(labels, 80, seed=2)
    interval = document_interval(labels, sample, y[sample.rows], target="pool")
    gain = labels.probs @ GAINS
    used = labels.weights > 0
    mean = np.array([gain[(labels.query == q) & used].mean() for q in range(60)])
    x = np.column_stack([np.ones(len(y)), gain, mean[labels.query]])
    s, p = sample.rows, sample.inclusion[sample.rows]
    w = labels.weights[s]
    root = np.sqrt(w**2 * (1 - p) / p**2)

    def fit(keep):
        return np.linalg.lstsq(x[s][keep] * root[keep, None], y[s][keep] * root[keep])[0]

    everything = np.ones(80, dtype=bool)
    beta = fit(everything)
    total = labels.weights @ (x @ beta) + (w / p) @ (y[s] - x[s] @ beta)
    assert interval.estimate == pytest.approx(total / 60)
    left_out = np.array([y[r] - x[r] @ fit(np.arange(80) != i) for i, r in enumerate(s)])
    a = (x[s] * root[:, None] ** 2).T @ x[s]
    gap = labels.weights @ x - (w / p) @ x[s]
    v = w / p + root**2 * (x[s] @ np.linalg.solve(a, gap))
    variance = ((1 - p) * (v * left_out) ** 2).sum() / 60**2
    assert interval.half_width == pytest.approx(t_quantile(0.975, 77) * np.sqrt(variance))


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("doubt", None),
        ("constant", InferCode.JUDGE_BLIND()),
        ("noise", InferCode.JUDGE_NO_HELP()),
    ],
)
def test_a_useless_judge_is_named(kind, note):
    labels, y = pool("doubt" if kind == "noise" else kind)
    sample = design_document_sample(labels, 100, seed=0)
    gains = y[sample.rows]
    if kind == "noise":
        judge = labels.document_gains()[sample.rows]
        gains = np.where(np.arange(100) % 2 == 0, 0.0, 1.0)[np.argsort(np.argsort(judge))]
    interval = document_interval(labels, sample, gains)
    assert interval.notes == (() if note is None else (note,))
    assert (interval.correlation is None) == (kind == "constant")


def test_refusals():
    labels, y = pool()
    sample = design_document_sample(labels, 100, seed=0)
    gains = y[sample.rows]
    missing = gains.copy()
    missing[[7, 9]] = np.nan
    outside = gains.copy()
    outside[5] = 8
    other, _ = pool(seed=1)
    with pytest.raises(DataError, match="drawn from another pool"):
        document_interval(other, sample, gains)
    with pytest.raises(InsufficientDataError, match="same gain 0") as caught:
        document_interval(labels, sample, np.zeros(100))
    assert caught.value.n == 100
    few = design_document_sample(labels, 49, seed=0)
    with pytest.raises(InsufficientDataError, match="49 labelled documents are too few") as caught:
        document_interval(labels, few, y[few.rows])
    assert (caught.value.n, caught.value.n_needed) == (49, 50)
    single, y1 = pool(n_queries=1, n_docs=200, cutoff=200)
    one = design_document_sample(single, 60, seed=0)
    with pytest.raises(InsufficientDataError, match="one query says nothing"):
        document_interval(single, one, y1[one.rows])
    assert document_interval(single, one, y1[one.rows], target="pool").half_width > 0

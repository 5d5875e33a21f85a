"""Calibration of label distributions: whether the probabilities a judge gives come true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.judges.grade_bins import (
    bin_codes,
    bin_means,
    clustered_or_none,
    one_grade,
    ranked_score,
)
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.judge_calibration import (
    LabelCalibration,
)
from rag_sourcebias.types.labels import LabelDistributions

__all__ = ["audit_labels", "calibration_of"]

_SIMULATIONS = 200
_MOST_DRAWS = 4_000_000


def audit_labels(
    judge: LabelDistributions,
    human: LabelDistributions,
    *,
    gains: Sequence[float] | None = None,
    bins: int = 10,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> LabelCalibration:
    """Hold a judge's label distributions against human labels of the same pairs.

    Parameters
    ----------
    judge, human : LabelDistributions
        Pairs only the judge knows are left out; every human pair must be judged. Human labels of
        several people may be distributions themselves. Queries are the clusters.
    gains : sequence of float, optional
        Gain of each grade, the lowest first; 2^r − 1 by default.
    bins : int
        Bins of about equal size of a reliability curve; equal predictions share one.
    confidence_level : float
        In (0, 1).
    rng : Generator or int
        For the calibration error that a calibrated judge would show by chance.

    Raises
    ------
    DataError
        If human pairs are not judged (how many, which first), or the numbers of grades differ.
    """
    if judge.n_grades != human.n_grades:
        raise DataError(
            f"the judge has {judge.n_grades} grades and the human labels have {human.n_grades}; "
            "read both with the same n_grades"
        )
    row_of = {
        (judge.query_ids[q], judge.doc_ids[d]): i
        for i, (q, d) in enumerate(
            zip(judge.query_codes.tolist(), judge.doc_codes.tolist(), strict=True)
        )
    }
    wanted = [
        (human.query_ids[q], human.doc_ids[d])
        for q, d in zip(human.query_codes.tolist(), human.doc_codes.tolist(), strict=True)
    ]
    place = np.array([row_of.get(pair, -1) for pair in wanted], dtype=np.int64)
    lost = np.flatnonzero(place < 0)
    if len(lost):
        query, doc = wanted[int(lost[0])]
        raise DataError(
            f"{len(lost)} of {len(wanted)} human-labelled pairs are not judged, first query "
            f"{query!r}, document {doc!r}; judge them, or leave them out"
        )
    return calibration_of(
        judge.probs[place],
        human.probs,
        clusters=human.query_codes.astype(np.int64),
        gains=gains,
        bins=bins,
        confidence_level=confidence_level,
        rng=rng,
    )


def calibration_of(
    probs: FloatArray,
    observed: FloatArray,
    *,
    clusters: IntArray | None = None,
    gains: Sequence[float] | None = None,
    bins: int = 10,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> LabelCalibration:
    """Measure the calibration of probabilities of grades.

    Parameters
    ----------
    probs, observed : float64 arrays of shape (n, L)
        Rows sum to 1. A human grade is a row with a single 1; shares of several people also do.
    clusters : int64 array of shape (n,) or None
        Codes of what may depend on each other; None: every row is independent.
    gains : sequence of L floats or None
        Gain of each grade; None is 2^r − 1.
    bins : int
        Bins of about equal size; equal predictions share one.
    rng : numpy.random.Generator or int
        For ``ece_if_calibrated``.

    Raises
    ------
    DataError
        If the shapes differ.
    InsufficientDataError
        With fewer than 2 rows.
    """
    check_level(confidence_level)
    if probs.shape != observed.shape or probs.ndim != 2:
        raise DataError(f"probabilities of shape {probs.shape}, labels of shape {observed.shape}")
    n, n_grades = probs.shape
    if n < 2:
        raise InsufficientDataError(f"calibration of {n} item(s)", n=n, n_needed=2)
    values = np.exp2(np.arange(n_grades)) - 1.0 if gains is None else np.asarray(gains, float)
    if values.shape != (n_grades,):
        raise DataError(f"{len(values)} gains for {n_grades} grades")
    if clusters is None:
        clusters = np.arange(n)
    generator = as_generator(rng)
    simulated = _draws(probs, generator)
    grades = tuple(
        one_grade(
            probs,
            observed,
            r,
            simulated=simulated,
            clusters=clusters,
            bins=bins,
            level=confidence_level,
        )
        for r in range(n_grades)
    )
    shares = np.broadcast_to(observed.mean(axis=0), observed.shape)
    predicted, seen = probs @ values, observed @ values
    spread = float(np.var(predicted))
    slope = float(np.cov(predicted, seen, ddof=0)[0, 1]) / spread if spread > 1e-12 else None
    return LabelCalibration(
        n=n,
        grades=grades,
        brier=float(((probs - observed) ** 2).sum(axis=1).mean()),
        rps=ranked_score(probs, observed),
        rps_of_shares=ranked_score(shares, observed),
        gain_error=clustered_or_none(predicted - seen, clusters, confidence_level),
        gain_slope=slope,
        gain_bins=bin_means(predicted, seen, bin_codes(predicted, bins)),
    )


def _draws(probs: FloatArray, rng: np.random.Generator) -> IntArray:
    """Grades drawn from the judge's own probabilities; shape (simulations, n)."""
    n = len(probs)
    times = max(10, min(_SIMULATIONS, _MOST_DRAWS // n))
    steps = np.cumsum(probs, axis=1)[:, :-1]
    drawn = np.zeros((times, n), dtype=np.int64)
    uniform = rng.random((times, n))
    for r in range(steps.shape[1]):
        drawn += uniform >= steps[:, r]
    return drawn

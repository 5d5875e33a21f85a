"""Binned predictions of grades beside what was observed."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.inference.clusters import clustered_mean
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_calibration import (
    GradeCalibration,
    ReliabilityBin,
)

__all__ = ["bin_codes", "bin_means", "clustered_or_none", "one_grade", "ranked_score"]


def ranked_score(probs: FloatArray, observed: FloatArray) -> float:
    """Ranked probability score of every row."""
    gap = np.cumsum(probs - observed, axis=1)[:, :-1]
    return float((gap**2).mean())


def clustered_or_none(errors: FloatArray, clusters: IntArray, level: float) -> Interval | None:
    """Clustered mean, None where it has no interval."""
    try:
        return clustered_mean(errors, clusters, confidence_level=level)
    except InsufficientDataError:
        return None


def bin_codes(predicted: FloatArray, bins: int) -> IntArray:
    """Code of the bin of each item; bins are never split between equal predictions."""
    _, code, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    wanted = np.minimum((middle * bins / len(predicted)).astype(np.int64), bins - 1)
    _, packed = np.unique(wanted, return_inverse=True)
    result: IntArray = packed[code].astype(np.int64)
    return result


def bin_means(
    predicted: FloatArray, seen: FloatArray, code: IntArray
) -> tuple[ReliabilityBin, ...]:
    """Mean prediction and observation in each bin."""
    n = np.bincount(code)
    return tuple(
        ReliabilityBin(n=int(size), predicted=float(p), observed=float(o))
        for size, p, o in zip(
            n,
            np.bincount(code, weights=predicted) / n,
            np.bincount(code, weights=seen) / n,
            strict=True,
        )
    )


def one_grade(
    probs: FloatArray,
    observed: FloatArray,
    r: int,
    *,
    simulated: IntArray,
    clusters: IntArray,
    bins: int,
    level: float,
) -> GradeCalibration:
    """Calibration of the probability of one grade."""
    p, o = probs[:, r], observed[:, r]
    code = bin_codes(p, bins)
    table = bin_means(p, o, code)
    weight = np.array([b.n for b in table]) / len(p)
    mean_p = np.array([b.predicted for b in table])
    mean_o = np.array([b.observed for b in table])
    share = float(o.mean())
    k = len(table)
    hits = np.stack([np.bincount(code[row == r], minlength=k) for row in simulated])
    noise = np.abs(hits / len(p) - weight * mean_p).sum(axis=1).mean()
    within_p, within_o = p - mean_p[code], o - mean_o[code]
    reliability = float(weight @ (mean_p - mean_o) ** 2)
    resolution = float(weight @ (mean_o - share) ** 2)
    brier = float(((p - o) ** 2).mean())
    uncertainty = float(o.var())
    return GradeCalibration(
        grade=r,
        predicted_share=float(p.mean()),
        observed_share=share,
        difference=clustered_or_none(p - o, clusters, level),
        ece=float(weight @ np.abs(mean_p - mean_o)),
        ece_if_calibrated=float(noise),
        brier=brier,
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within_bins=float((within_p**2).mean() - 2 * (within_p * within_o).mean()),
        bins=table,
    )

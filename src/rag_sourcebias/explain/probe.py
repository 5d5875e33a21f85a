"""How well a linear probe tells two sources apart, on pairs that it has not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.explain.vectors import checked_pairs
from rag_sourcebias.inference import clustered_mean
from rag_sourcebias.inference.quantiles import as_generator
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval

__all__ = ["probe_accuracy"]

_MIN_PAIRS = 20
_PENALTIES = 10.0 ** np.arange(-6, 3)  # relative to the mean square of the singular values
_ASSUMPTIONS = ("pairs are a random sample; for probes trained on as many pairs as these",)


def probe_accuracy(
    human_vectors: npt.ArrayLike,
    other_vectors: npt.ArrayLike,
    *,
    folds: int = 5,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> tuple[Interval, Interval]:
    """Cross-validated accuracy of ridge regression on ±1 (with equal sizes: a shrunken LDA).

    Both versions of a document are in the same fold, and the penalty is chosen by generalised
    cross-validation within the training folds.

    Parameters
    ----------
    human_vectors, other_vectors : array_like of shape (n, d)
    folds : int
        At least 2 and at most n.

    Returns
    -------
    documents : Interval
        Share of documents assigned to their source; chance is 0.5.
    pairs : Interval
        Share of pairs of which the other version has the higher score; ties count half.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 20 pairs.
    """
    human, other = checked_pairs(human_vectors, other_vectors, at_least=_MIN_PAIRS)
    n = len(human)
    if not 2 <= folds <= n:
        raise DataError(f"folds is {folds}; it must be between 2 and the {n} pairs")
    fold = as_generator(rng).permutation(n) % folds
    scores = np.empty((2, n))
    for held in range(folds):
        test, train = fold == held, fold != held
        weights, middle = _ridge(human[train], other[train])
        scores[0, test] = (human[test] - middle) @ weights
        scores[1, test] = (other[test] - middle) @ weights
    # A score of exactly 0 says nothing: half right.
    right = np.concatenate(((1 - np.sign(scores[0])) / 2, (1 + np.sign(scores[1])) / 2))
    above = (1 + np.sign(scores[1] - scores[0])) / 2
    found = (
        clustered_mean(values, clusters, confidence_level=confidence_level, bounds=(0.0, 1.0))
        for values, clusters in ((right, np.tile(np.arange(n), 2)), (above, np.arange(n)))
    )
    documents, pairs = (replace(interval, assumptions=_ASSUMPTIONS) for interval in found)
    return documents, pairs


def _ridge(human: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the score and the point where it is 0."""
    x = np.concatenate((human, other))
    y = np.repeat((-1.0, 1.0), len(human))
    middle = x.mean(axis=0)
    left, values, rows = np.linalg.svd(x - middle, full_matrices=False)
    squares = values**2
    if not squares.sum() > 0:
        return np.zeros(x.shape[1]), middle
    inner = left.T @ y
    best, weights = np.inf, np.zeros(x.shape[1])
    for penalty in _PENALTIES * squares.mean():
        shrink = squares / (squares + penalty)
        residual = y @ y - 2 * (shrink * inner**2).sum() + (shrink**2 * inner**2).sum()
        loss = residual / (len(y) - 1 - shrink.sum()) ** 2 if shrink.sum() < len(y) - 1 else np.inf
        if loss < best:
            best = loss
            weights = rows.T @ (inner * values / (squares + penalty))
    return weights, middle

"""Scores of documents that were not used for fitting, turned into probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["Calibration", "fit_calibration"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """Probabilities ``softmax(factor · scores + bias)``.

    With two labels this is Platt scaling, with more temperature scaling with a bias per label.

    Parameters
    ----------
    factor : float
        Positive: the order of two labels' scores is changed by the bias only.
    bias : float64 array of shape (K,)
    """

    factor: float
    bias: FloatArray

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Probabilities of shape ``(n, K)``; rows add up to 1."""
        return _softmax(self.factor * scores + self.bias)


def fit_calibration(scores: FloatArray, codes: IntArray) -> Calibration:
    """Fit factor and bias to held-out scores by penalised maximum likelihood.

    The penalty is that of one observation or so: it matters only where the labels are separated
    perfectly, and keeps the probabilities away from 0 and 1 there.

    Parameters
    ----------
    scores : float64 array of shape (n, K)
        From models that did not see the documents.
    codes : int64 array of shape (n,)

    Notes
    -----
    Guo, Pleiss, Sun & Weinberger, "On calibration of modern neural networks", ICML 2017, §4.2.
    """
    from scipy.optimize import minimize

    n, n_labels = scores.shape
    hit = np.zeros((n, n_labels))
    hit[np.arange(n), codes] = 1.0

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_factor, bias = parameters[0], parameters[1:]
        factor = np.exp(log_factor)
        probabilities = _softmax(factor * scores + bias)
        likelihood = np.log(np.maximum(probabilities[np.arange(n), codes], 1e-300)).sum()
        error = probabilities - hit
        gradient = np.concatenate(
            [[factor * (error * scores).sum() + log_factor], error.sum(axis=0) + 0.1 * bias]
        )
        return float(-likelihood + log_factor**2 / 2 + 0.05 * (bias**2).sum()), gradient

    found = minimize(
        loss,
        np.zeros(n_labels + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-5.0, 5.0), *[(None, None)] * n_labels],
    )
    return Calibration(factor=float(np.exp(found.x[0])), bias=np.asarray(found.x[1:], np.float64))


def _softmax(scores: FloatArray) -> FloatArray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return result

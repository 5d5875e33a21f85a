"""An interval for every query: ours beside MAPIE, which is given the judge's value of it."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mapie.regression import JackknifeAfterBootstrapRegressor, SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speed"))
from crc import GAINS, LEVEL, workload

from rag_sourcebias.stats.crc import RankedLabels
from rag_sourcebias.stats.crc_intervals import per_query_intervals

LABELLED, TARGET, DOCS = 60, 200, 20


class JudgeItself(RegressorMixin, BaseEstimator):
    """Predicts what the judge said."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> JudgeItself:  # noqa: ARG002
        self.n_features_in_ = x.shape[1]
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Draw:
    """Labelled and target queries of one population, with soft labels of a generous judge."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.probs, self.weights, self.y = workload(LABELLED + TARGET, DOCS, rng)
        self.judge = ((self.probs @ GAINS) @ self.weights)[:, None]

    def labels(self, part: slice) -> RankedLabels:
        return RankedLabels.from_grid(self.probs[part], self.weights, GAINS)


KNOWN, NEW = slice(0, LABELLED), slice(LABELLED, None)


def ours(draw: Draw, rule: str) -> tuple[np.ndarray, np.ndarray]:
    found = per_query_intervals(
        draw.labels(KNOWN), draw.y[KNOWN], draw.labels(NEW), rule=rule, confidence_level=LEVEL
    )
    return found.lower, found.upper


def split(draw: Draw, _: str) -> tuple[np.ndarray, np.ndarray]:
    model = SplitConformalRegressor(JudgeItself(), confidence_level=LEVEL, prefit=True)
    model.conformalize(draw.judge[KNOWN], draw.y[KNOWN])
    bounds = model.predict_interval(draw.judge[NEW])[1]
    return bounds[:, 0, 0], bounds[:, 1, 0]


def jackknife(draw: Draw, _: str) -> tuple[np.ndarray, np.ndarray]:
    model = JackknifeAfterBootstrapRegressor(
        LinearRegression(), confidence_level=LEVEL, random_state=0
    )
    model.fit_conformalize(draw.judge[KNOWN], draw.y[KNOWN])
    bounds = model.predict_interval(draw.judge[NEW])[1]
    return bounds[:, 0, 0], bounds[:, 1, 0]


METHODS = {
    "ours, residual (default)": (ours, "residual"),
    "ours, recalibrated labels": (ours, "recalibrated"),
    "MAPIE, split on the judge's value": (split, ""),
    "MAPIE, jackknife+-after-bootstrap of a regression": (jackknife, ""),
}


def conformal_rows(*, quick: bool) -> dict[str, Any]:
    """Coverage, width and time of each method over the same draws."""
    draws = 5 if quick else 300
    rows = []
    for name, (method, rule) in METHODS.items():
        held, width, seconds = [], [], []
        for seed in range(draws):
            draw = Draw(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.process_time()
                low, high = method(draw, rule)
                seconds.append(time.process_time() - start)
            y = draw.y[NEW]
            held.append(float(np.mean((low <= y) & (y <= high))))
            width.append(float(np.mean(high - low)))
        rows.append(
            {
                "method": name,
                "coverage": round(float(np.mean(held)), 4),
                "width": round(float(np.mean(width)), 3),
                "ms": round(1000 * float(np.median(seconds)), 1),
            }
        )
    return {"draws": draws, "labelled": LABELLED, "target": TARGET, "docs": DOCS, "rows": rows}

"""Samples drawn from complete data as if it were a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_sourcebias.intervals.values import Target
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["Population", "Sample"]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Labelled and unlabelled items, with the human value of all of them."""

    y: FloatArray
    yhat: FloatArray
    y_unlabeled: FloatArray
    yhat_unlabeled: FloatArray
    clusters: IntArray | None
    clusters_unlabeled: IntArray | None

    def truth(self, target: Target, population: float) -> float:
        """Return the mean the interval is for."""
        if target == "population":
            return population
        if target == "unlabeled":
            return float(self.y_unlabeled.mean())
        return float(np.concatenate([self.y, self.y_unlabeled]).mean())


class Population:
    """Items, or clusters of them, to be drawn with replacement."""

    def __init__(self, y: FloatArray, yhat: FloatArray, codes: IntArray | None) -> None:
        self.y, self.yhat = y, yhat
        self.order, self.starts = np.arange(len(y)), np.arange(len(y) + 1)
        self.clustered = codes is not None
        if codes is not None:
            self.order = np.argsort(codes, kind="stable")
            self.starts = np.searchsorted(codes[self.order], np.arange(int(codes.max()) + 2))

    def draw(self, n: int, pool: int, rng: np.random.Generator) -> Sample:
        """Labelled items and ``pool`` others or, with clusters, that many of them."""
        drawn = rng.integers(0, len(self.starts) - 1, n + pool)
        if not self.clustered:
            rows, copy, cut = drawn, None, n
        else:
            sizes = (self.starts[1:] - self.starts[:-1])[drawn]
            first = np.cumsum(sizes) - sizes
            rows = np.repeat(self.starts[drawn] - first, sizes) + np.arange(int(sizes.sum()))
            # a cluster drawn twice counts as two
            rows, copy = self.order[rows], np.repeat(np.arange(n + pool), sizes)
            cut = int(sizes[:n].sum())
        return Sample(
            y=self.y[rows[:cut]],
            yhat=self.yhat[rows[:cut]],
            y_unlabeled=self.y[rows[cut:]],
            yhat_unlabeled=self.yhat[rows[cut:]],
            clusters=None if copy is None else copy[:cut],
            clusters_unlabeled=None if copy is None else copy[cut:],
        )

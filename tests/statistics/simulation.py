"""Populations with known means, and the tolerance that simulated coverage is held to."""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr, betaincinv, ndtr

RUNS = 1000
FLOOR = 0.93  # what an interval at a nominal 95 % must cover in every setting


def acceptable(floor: float, runs: int, *, chance: float = 0.001) -> float:
    """Return the smallest observed coverage at which a true coverage of ``floor`` is believable.

    A test with this bound fails by chance once in 1,000 when the true coverage is exactly the
    floor, and far less often when it is higher.
    """
    hits = np.arange(runs + 1)
    return float(hits[np.searchsorted(bdtr(hits, runs, floor), chance)]) / runs


class Population:
    """A finite population of queries with scores (h, l), drawn from with replacement."""

    def __init__(self, values: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.values = np.asarray(values, dtype=float)
        self.weights = weights

    @property
    def delta(self) -> float:
        """Relative Δ of the population: known, not estimated."""
        h, low = self.values.mean(axis=0) if self.weights is None else self.weights @ self.values
        return 200 * (h - low) / (h + low)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if self.weights is None:
            rows = rng.integers(0, len(self.values), n)
        else:
            rows = np.repeat(np.arange(len(self.values)), rng.multinomial(n, self.weights))
        return self.values[rows, 0], self.values[rows, 1]


def at_one(h: float, low: float) -> Population:
    """Cutoff 1: the human copy is first, the LLM copy is first, or neither."""
    return Population(np.array([[1, 0], [0, 1], [0, 0]]), np.array([h, low, 1 - h - low]))


def with_ties(h: float, low: float, tied: float, value: float) -> Population:
    """Twins that often tie: both then score ``value``."""
    return Population(
        np.array([[1, 0], [0, 1], [value, value], [0, 0]]),
        np.array([h, low, tied, 1 - h - low - tied]),
    )


def ranked(*, lead: float, base: float, k: int = 5, others: int = 18) -> Population:
    """NDCG@k of twins among other documents; scores correlate through the query's difficulty.

    ``lead`` is what the LLM copy has ahead, ``base`` how far both stand above other documents.
    """
    rng, n = np.random.default_rng(1), 100_000
    query = rng.normal(base, 1, n)
    human, llm = query + rng.normal(0, 1, n), query + lead + rng.normal(0, 1, n)
    rest = rng.normal(0, 1, (n, others))
    first = 1 + (rest > human[:, None]).sum(axis=1) + (llm > human)
    second = 1 + (rest > llm[:, None]).sum(axis=1) + (human > llm)
    return Population(
        np.column_stack([np.where(r <= k, 1 / np.log2(r + 1), 0) for r in (first, second)])
    )


def skewed(a: float, a_other: float, b: float, *, zero: float, zero_other: float) -> Population:
    """Correlated beta scores, most of them tiny, and many zeros: few queries carry the mean."""
    rng, n = np.random.default_rng(2), 100_000
    shared = rng.normal(size=n)
    columns = [
        betaincinv(shape, b, ndtr(0.5 * shared + np.sqrt(0.75) * rng.normal(size=n)))
        * (rng.random(n) > zeros)
        for shape, zeros in ((a, zero), (a_other, zero_other))
    ]
    return Population(np.column_stack(columns))


POPULATIONS = {
    "cutoff 1 (.28, .46)": at_one(0.28, 0.46),
    "cutoff 1 (.05, .12)": at_one(0.05, 0.12),
    "cutoff 1 (.6, .3)": at_one(0.6, 0.3),
    "cutoff 1 (.3, .03)": at_one(0.3, 0.03),
    "NDCG@5": ranked(lead=0.6, base=0.5),
    "NDCG@5, hard queries": ranked(lead=1.5, base=-1.5),
    "skewed": skewed(0.2, 0.4, 2, zero=0.3, zero_other=0.3),
    "skewed, rare": skewed(0.3, 0.3, 1, zero=0.95, zero_other=0.9),
    "skewed, one-sided": skewed(0.1, 0.5, 4, zero=0.9, zero_other=0.5),
    "twins tie, 5 % differ": with_ties(0.05, 0, 0.5, 1.0),
    "twins tie half": with_ties(0.1, 0.05, 0.3, 0.5),
}

"""Streams of retrievals with a known share: independent, autocorrelated and repeated."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

PHI, SPREAD = (
    0.9,
    0.1,
)  # of the share that drifts: correlation from one event to the next, deviation
REPEATS = 3.0  # events per query on average
POLAR = (0.1, 0.9)  # chance of the outcome of a query, by query
BUCKET = 50  # events


def independent(rng, looks: int, streams: int, share: float) -> np.ndarray:
    """Binary outcomes, shape (looks, streams)."""
    return (rng.random((looks, streams), dtype=np.float32) < share).astype(float)


def exposures(rng, looks: int, streams: int, share: float) -> np.ndarray:
    """Shares of the exposure of one retrieval, in [0, 1] with mean ``share``."""
    return rng.beta(4 * share, 4 * (1 - share), (looks, streams))


def drifting(rng, looks: int, streams: int, *, state: np.ndarray | None = None) -> tuple:
    """Outcomes whose chance wanders around .5 (AR(1)); the chances, and the state to go on from."""
    noise = rng.standard_normal((looks, streams)) * SPREAD * np.sqrt(1 - PHI**2)
    if state is None:
        state = PHI * SPREAD * rng.standard_normal((1, streams))
    walk, state = lfilter([1.0], [1.0, -PHI], noise, axis=0, zi=state)
    chance = np.clip(0.5 + walk, 0.02, 0.98)
    outcomes = rng.random((looks, streams), dtype=np.float32) < chance
    return outcomes.astype(float), chance, state


def drifting_buckets(rng, looks: int, streams: int) -> np.ndarray:
    """Means of ``BUCKET`` drifting outcomes each, shape (looks, streams)."""
    means, state, at_once = np.empty((looks, streams)), None, 50
    for start in range(0, looks, at_once):
        n = min(at_once, looks - start)
        outcomes, _, state = drifting(rng, n * BUCKET, streams, state=state)
        means[start : start + n] = outcomes.reshape(n, BUCKET, streams).mean(axis=1)
    return means


def repeated_queries(rng, looks: int, streams: int) -> np.ndarray:
    """Means over the repeats of each query: what an aggregator with enough memory gives."""
    size = rng.geometric(1 / REPEATS, (looks, streams))
    chance = rng.choice(POLAR, (looks, streams))
    return rng.binomial(size, chance) / size


def repeated_events(rng, events: int) -> tuple[np.ndarray, np.ndarray]:
    """Query ids and outcomes of one stream in which queries come back soon after."""
    size = rng.geometric(1 / REPEATS, events)
    query = np.repeat(np.arange(events), size)[:events]
    order = np.argsort(np.arange(events) + rng.exponential(20, events))
    query = query[order]
    chance = rng.choice(POLAR, events)
    return query, (rng.random(events) < chance[query]).astype(float)

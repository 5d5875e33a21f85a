"""Literal transcriptions of [R] Eq. 16–25 and random label distributions, awkward ones included."""

from __future__ import annotations

from math import floor

import numpy as np

from rag_sourcebias.judged.crc import RankedLabels, tail_mass

TIE = 1e-9
GAINS = np.array([0.0, 1.0, 3.0, 7.0])


def perturb_literally(p, lam):
    """Eq. 16–18 for one distribution: remove, keep the extreme label, clip, renormalise."""
    if lam < 0:
        return perturb_literally(p[::-1], -lam)[::-1]
    removed = [max(0.0, lam - sum(p[:r])) for r in range(len(p))]
    kept = [max(0.0, p[r] - removed[r]) for r in range(len(p))]
    kept[-1] = p[-1]
    total = sum(kept)
    if lam == 1 or total <= 0:
        return [0.0] * (len(p) - 1) + [1.0]
    return [k / total for k in kept]


def utilities_literally(labels, lam):
    """Eq. 19 and 1, document by document."""
    totals = np.zeros(labels.n_queries)
    for p, weight, query in zip(labels.probs, labels.weights, labels.query, strict=True):
        q = np.array(perturb_literally(list(p), lam))
        totals[query] += weight * (q @ labels.gains)
    return totals


def bisect_dual(labels, y, indices, confidence_level, *, steps=60):
    """Eq. 22–25 by two binary searches; None where no λ exists."""
    alpha = tail_mass(confidence_level)
    m = len(indices)
    allowed = floor((m * alpha - (1 - alpha)) / 2)

    def sums(lam):
        return (utilities_literally(labels, lam) - y)[indices].sum(axis=1)

    def misses_high(lam):
        return int((sums(lam) < -TIE).sum())

    def misses_low(lam):
        return int((sums(lam) > TIE).sum())

    if misses_high(1.0) > allowed or misses_low(-1.0) > allowed:
        return None
    low, high = -1.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if misses_high(middle) <= allowed else (middle, high)
    lambda_high = high
    low, high = -1.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if misses_low(middle) <= allowed else (low, middle)
    lambda_low = low
    if lambda_low > lambda_high:
        lambda_low = lambda_high = min(max(0.0, lambda_high), lambda_low)
    return lambda_low, lambda_high


def awkward_labels(seed, *, n_queries=None):
    """Random distributions with zeros, one-hot rows, ragged and empty queries; (labels, y)."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6)) if n_queries is None else n_queries
    sizes = rng.integers(0 if seed % 4 == 0 else 1, 6, size=n)
    m, n_grades = int(sizes.sum()), int(rng.integers(2, 6))
    probs = rng.dirichlet(np.full(n_grades, 0.5), size=m)
    probs = np.where(rng.random(probs.shape) < (0.0, 0.3, 0.5)[seed % 3], 0.0, probs)
    probs[probs.sum(axis=1) == 0, 0] = 1.0
    hard = rng.random(m) < (0.0, 0.3, 1.0)[seed // 3 % 3]
    probs[hard] = np.eye(n_grades)[rng.integers(0, n_grades, size=m)][hard]
    probs /= probs.sum(axis=1, keepdims=True)
    gains = 2.0 ** np.arange(n_grades) - 1
    query = np.repeat(np.arange(n), sizes)
    weights = np.where(rng.random(m) < 0.1, 0.0, rng.random(m))
    labels = RankedLabels(probs=probs, weights=weights, query=query, n_queries=n, gains=gains)
    truth = labels.total(gains[rng.integers(0, n_grades, size=m)])
    return labels, (labels.utilities() if seed % 5 == 0 else truth)


def judged(n, *, seed=0, bias=0.7, docs=8):
    """Soft, generous judge of random grades."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(0, 0.8, (n, 1)) + rng.normal(0, 1, (n, docs)) - 0.2 * np.arange(docs)
    cuts = np.array([0.0, 1.0, 2.0])
    grades = (latent[..., None] > cuts).sum(-1)
    seen = 0.7 * latent + bias + rng.normal(0, 0.7, (n, docs))
    above = 1 / (1 + np.exp(-(seen[..., None] - cuts) / 0.35))
    full = np.concatenate([np.ones((n, docs, 1)), above, np.zeros((n, docs, 1))], axis=-1)
    weights = 1 / np.log2(np.arange(2, docs + 2))
    labels = RankedLabels.from_grid(full[..., :-1] - full[..., 1:], weights, GAINS)
    return labels, GAINS[grades] @ weights

"""Sequential tests that the monitor does not use, compared with its bets in alarms.py.

Each is a function from observations, shape (looks, streams), to the evidence after each of them
as a logarithm; :class:`Watched` looks for the alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import betainc, betaincc, betaln, gammaln, xlog1py, xlogy

_SMALLEST = np.log(np.finfo(np.float64).tiny)
START = 200
SHARPEST = 500


class Watched:
    """A test of whole streams: an alarm where the evidence ever reaches 1/α (Ville 1939)."""

    def __init__(self, log_e: Callable[..., np.ndarray], *, confidence_level: float = 0.95) -> None:
        self.log_e, self.threshold = log_e, -math.log1p(-confidence_level)

    def update_many(self, values) -> np.ndarray:
        """Look at the streams, from their start."""
        rows = np.asarray(values, np.float64)
        path = self.log_e(rows[:, None] if rows.ndim == 1 else rows)
        reached = path >= self.threshold
        self.alarms = reached.any(axis=0)
        self.alarm_at = np.where(self.alarms, reached.argmax(axis=0) + 1, 0)
        return path


def beta_evidence(rows, lower, upper, *, strength, side) -> np.ndarray:
    """Evidence of the Beta mixture with the baseline as its mean; one-sided, it is cut there.

    Over a range of baselines, one of which is true all the time, the smallest value counts.
    """
    total, n = rows.cumsum(axis=0), np.arange(1.0, len(rows) + 1)[:, None]
    rest, centre = n - total, (lower + upper) / 2
    a, b = strength * centre, strength * (1 - centre)
    ends = {"two-sided": np.clip(total / n, lower, upper), "greater": upper, "less": lower}
    near = ends[side]
    log_e = betaln(a + total, b + rest) - betaln(a, b) - xlogy(total, near) - xlog1py(rest, -near)
    if side != "two-sided":
        part = betaincc if side == "greater" else betainc
        with np.errstate(divide="ignore"):
            log_e = log_e + np.log(part(a + total, b + rest, near)) - np.log(part(a, b, near))
    return np.maximum(log_e, _SMALLEST)


def beta_test(null, *, strength=50.0, side="two-sided", confidence_level=0.95) -> Watched:
    """Is the share still its baseline? ``null`` is a share, one per stream, or a range of them."""
    lower, upper = getattr(null, "lower", null), getattr(null, "upper", null)
    ends = {"lower": np.asarray(lower), "upper": np.asarray(upper)}
    log_e = partial(beta_evidence, **ends, strength=strength, side=side)
    return Watched(log_e, confidence_level=confidence_level)


def dirichlet_log_e(totals, null, a) -> np.ndarray:
    """Evidence of the Dirichlet-multinomial mixture, of totals with shape (..., groups).

    For shares x (non-negative, Σx = 1) with conditional mean p, Π (q_k/p_k)^(x_k) ≤ Σ x_k q_k/p_k,
    whose mean is 1 for every composition q; mixing q over Dirichlet(a) gives
    B(a + Σx) / B(a) / Π p_k^(Σ x_k).
    """
    parts = gammaln(a + totals) - gammaln(a) - xlogy(totals, null)
    whole = a.sum()
    return parts.sum(-1) - gammaln(whole + totals.sum(-1)) + gammaln(whole)


def composition_test(null, *, strength=50.0) -> Watched:
    """Is the composition of one stream still the baseline? One alarm for all groups."""
    a = strength * np.asarray(null)
    return Watched(lambda rows: dirichlet_log_e(rows.cumsum(axis=0), null, a)[:, None])


def start_for_share(share: float) -> int:
    """Return from which observation on the asymptotic level is reached for binary outcomes."""
    return max(START, math.ceil(50 / min(share, 1 - share)))


def asymptotic_evidence(rows, null, start, rho) -> np.ndarray:
    """Evidence by which Waudby-Smith et al. (arXiv:2103.06476), Theorem 2.2, excludes the null."""
    n, away = np.arange(1.0, len(rows) + 1)[:, None], rows - null
    mean = away.cumsum(axis=0) / n
    variance = np.maximum((away**2).cumsum(axis=0) / n - mean**2, 0.0)
    grown = n * rho**2 + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        log_e = ((n * rho * mean) ** 2 / variance / grown - np.log(grown)) / 2
    log_e = np.maximum(np.where(np.isnan(log_e), 0.0, log_e), -700.0)
    return np.where((n >= start) & (variance > 0), log_e, 0.0)


def asymptotic_test(null, *, start=START, confidence_level=0.95) -> Watched:
    """Is the mean what it should be? The interval is narrowest near observation 500.

    Starting at 200, 3.4 % to 3.9 % of null streams of even outcomes, normal and exponential values
    raised an alarm within 5,000 looks at a nominal 5 %, but more of those with rare outcomes,
    which must start later.
    """
    twice = y = -2 * math.log(1 - confidence_level)
    for _ in range(100):  # the width is smallest at nρ² = y = ln(1 + y) − 2 ln α
        y = twice + math.log1p(y)
    log_e = partial(asymptotic_evidence, null=null, start=start, rho=math.sqrt(y / SHARPEST))
    return Watched(log_e, confidence_level=confidence_level)

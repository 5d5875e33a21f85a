"""Means of any values: asymptotic confidence sequences."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.arrays import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.stats.resampling import check_level
from rag_sourcebias.stats.sequential import NullMean, NullRange, SequentialTest, as_range, as_rows

# Shares against a known baseline: the Beta-mixture e-process and its confidence sequence.
# For observations x in [0, 1] with conditional mean p, the product of (q/p)^x ((1−q)/(1−p))^(1−x)
# has expectation at most 1 for every q, since its factor is convex in x and so below the chord,
# whose mean is 1; for binary x they are equal. Mixing q over Beta(a, b) gives, with S = Σx,
# e_n = B(a + S, b + n − S) / B(a, b) / (p^S (1−p)^(n−S))
# (Robbins 1970, Annals of Mathematical Statistics 41:1397; the sub-Bernoulli case of Howard,
# Ramdas, McAuliffe & Sekhon 2021, Annals of Statistics 49:1055). No independence is needed: the
# mean of each observation given all before it must be p. One-sided, the mixture is cut at p. Over
# a range of baselines, one of which is true all the time, the smallest value counts: at the one
# nearest to S/n.


Side = Literal["two-sided", "greater", "less"]
SIDES = ("two-sided", "greater", "less")
_SMALLEST = np.log(np.finfo(np.float64).tiny)
_BISECTIONS = 60


def check_side(side: str) -> None:
    """Raise unless ``side`` is one of :data:`SIDES`."""
    if side not in SIDES:
        raise DataError(f"side {side!r} is none of {', '.join(SIDES)}")


def beta_log_e(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    null: NullMean,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    side: Side = "two-sided",
) -> FloatArray:
    """Logarithm of the Beta-mixture e-value.

    Parameters
    ----------
    n, total : array_like
        Observations, and their sum.
    null : float, array_like or NullRange
        Baseline.
    a, b : array_like
        Of the mixing distribution, positive.
    side : {"two-sided", "greater", "less"}
        Which shares count as evidence, compared with the baseline.

    Returns
    -------
    ndarray
        Of the shape that all arguments broadcast to.
    """
    from scipy.special import betainc, betaincc, betaln, xlog1py, xlogy

    n, total = np.asarray(n, np.float64), np.asarray(total, np.float64)
    rest = n - total
    ends = as_range(null)
    if side == "two-sided":
        near: Any = np.clip(total / np.maximum(n, 1), ends.lower, ends.upper)
    else:
        near = ends.upper if side == "greater" else ends.lower
    log_e = betaln(a + total, b + rest) - betaln(a, b) - xlogy(total, near) - xlog1py(rest, -near)
    if side != "two-sided":
        part = betaincc if side == "greater" else betainc
        with np.errstate(divide="ignore"):
            log_e = log_e + np.log(part(a + total, b + rest, near)) - np.log(part(a, b, near))
    return np.asarray(np.maximum(log_e, _SMALLEST))


def beta_interval(
    n: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    confidence_level: float,
) -> tuple[FloatArray, FloatArray]:
    """Baselines that the two-sided e-value does not reject: a confidence sequence for the share.

    Returns
    -------
    lower, upper : ndarray
        In [0, 1]; together over all time they hold the share with at least this probability.
    """
    n, total = np.asarray(n, np.float64), np.asarray(total, np.float64)
    threshold = -np.log1p(-confidence_level)
    ends = []
    # log e is convex in the baseline with its smallest value at the mean: bisect on either side.
    for outside in (0.0, 1.0):
        good = np.where(n > 0, total / np.maximum(n, 1), outside)
        bad = np.full(good.shape, outside)
        for _ in range(_BISECTIONS):
            middle = (good + bad) / 2
            held = beta_log_e(n, total, middle, a=a, b=b) < threshold
            good, bad = np.where(held, middle, good), np.where(held, bad, middle)
        ends.append(bad)
    return ends[0], ends[1]


# Shares against a known baseline, watched with the Beta mixture.


class BetaTest(SequentialTest):
    """Is the share of each group still its baseline? Binary outcomes, or values in [0, 1].

    Parameters
    ----------
    null : float, array_like of shape (groups,), or NullRange
        Baseline shares, strictly between 0 and 1.
    strength : float
        Observations that the mixing distribution is worth; it has the baseline as its mean. The
        default of 50 sees a share of .55 or .60 against .50 soonest.
    side : {"two-sided", "greater", "less"}
    confidence_level : float

    Raises
    ------
    DataError
        If an argument is out of its range.

    Examples
    --------
    >>> test = BetaTest(0.5)
    >>> _ = test.update_many([1.0] * 40)
    >>> test.alarm_at
    array([21])
    """

    kind = "beta"
    total: FloatArray

    def __init__(
        self,
        null: NullMean,
        *,
        strength: float = 50.0,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        ends = as_range(null)
        shape = np.broadcast_shapes(np.shape(ends.lower), np.shape(ends.upper), (1,))
        if len(shape) != 1:
            raise DataError(f"baselines must be one number per group, found shape {shape}")
        lower, upper = (end.copy() for end in ends.to(shape))
        centre = (lower + upper) / 2
        # One-sided, the end that evidence is measured from must leave room beyond it.
        from_end = {"two-sided": centre, "greater": upper, "less": lower}[side]
        if not ((from_end > 0) & (from_end < 1)).all() or not ((centre > 0) & (centre < 1)).all():
            raise DataError(f"baselines must lie strictly between 0 and 1, found {from_end}")
        if not (np.isfinite(strength) and strength > 0):
            raise DataError(f"strength must be a positive number, got {strength}")
        self.null, self.strength, self.side = NullRange(lower, upper), float(strength), side
        self._a, self._b = strength * centre, strength * (1 - centre)
        super().__init__(groups=shape[0], confidence_level=confidence_level)

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Confidence sequence for the share of each group, at this moment, two-sided."""
        return beta_interval(
            np.full(self.groups, float(self.n)),
            self.total,
            a=self._a,
            b=self._b,
            confidence_level=self.confidence_level,
        )

    def _advance(self, rows: FloatArray) -> FloatArray:
        # Sums go on from the state one by one, so a batch gives bit for bit what single ones do.
        totals = np.cumsum(np.vstack([self.total, rows]), axis=0)[1:]
        n = self.n + np.arange(1.0, len(rows) + 1)[:, None]
        self.total = totals[-1].copy()
        return beta_log_e(n, totals, self.null, a=self._a, b=self._b, side=self.side)

    def _clear(self) -> None:
        self.total = np.zeros(self.groups)

    def _state(self) -> dict[str, Any]:
        return {"total": self.total}

    def _settings(self) -> dict[str, Any]:
        return {"null": self.null.to_plain(), "strength": self.strength, "side": self.side}


# The whole composition of two or more groups at once: the Dirichlet-multinomial mixture.
# For shares x (non-negative, Σx = 1) with conditional mean p, Π (q_k/p_k)^(x_k) ≤ Σ x_k q_k/p_k,
# whose mean is 1 for every composition q. Mixing q over Dirichlet(a) gives an e-process
# e_n = B(a + Σx) / B(a) / Π p_k^(Σ x_k), B(a) = Π Γ(a_k) / Γ(Σ a_k)
# that is exact for one-hot x (top-1 sources) and holds for exposure shares as well; with two
# groups it is the Beta mixture.


_SUM = 1e-9


def dirichlet_log_e(totals: npt.ArrayLike, null: npt.ArrayLike, a: npt.ArrayLike) -> FloatArray:
    """Logarithm of the Dirichlet-multinomial e-value.

    Parameters
    ----------
    totals : array_like of shape (..., groups)
        Sums of the shares.
    null, a : array_like of shape (groups,)
        Baseline composition, and parameters of the mixing distribution.

    Returns
    -------
    ndarray of shape (...,)
    """
    from scipy.special import gammaln, xlogy

    totals, a = np.asarray(totals, np.float64), np.asarray(a, np.float64)
    parts = gammaln(a + totals) - gammaln(a) - xlogy(totals, np.asarray(null, np.float64))
    whole = a.sum()
    return np.asarray(parts.sum(-1) - gammaln(whole + totals.sum(-1)) + gammaln(whole))


class CompositionTest(SequentialTest):
    """Is the composition still the baseline? One alarm for all groups.

    Parameters
    ----------
    null : array_like of shape (members,)
        Baseline shares of at least two groups, positive, with sum 1.
    strength : float
        Observations that the mixing distribution is worth.
    confidence_level : float
    """

    kind = "composition"
    totals: FloatArray

    def __init__(
        self, null: npt.ArrayLike, *, strength: float = 50.0, confidence_level: float = 0.95
    ) -> None:
        self.null = np.array(null, np.float64)
        if self.null.ndim != 1 or len(self.null) < 2:
            raise DataError(f"a composition needs the shares of at least 2 groups, got {null!r}")
        if not (self.null > 0).all() or abs(self.null.sum() - 1) > _SUM:
            raise DataError(f"baseline shares must be positive with sum 1, got {null!r}")
        if not (np.isfinite(strength) and strength > 0):
            raise DataError(f"strength must be a positive number, got {strength}")
        self.strength = float(strength)
        super().__init__(groups=1, confidence_level=confidence_level)

    def update_many(self, values: npt.ArrayLike) -> FloatArray:
        """Add compositions, shape (n, members), rows with sum 1.

        Returns
        -------
        ndarray of shape (n, 1)

        Raises
        ------
        DataError
            If a share is not in [0, 1] or a row has another sum.
        """
        rows = as_rows(values, len(self.null))
        sums = rows.sum(axis=1)
        if np.any(np.abs(sums - 1) > _SUM):
            bad = int(np.argmax(np.abs(sums - 1)))
            raise DataError(f"shares of observation {bad} have sum {sums[bad]:.9g}, not 1")
        return self._note(self._advance(rows)) if len(rows) else rows[:, :1]

    def _advance(self, rows: FloatArray) -> FloatArray:
        totals = np.cumsum(np.vstack([self.totals, rows]), axis=0)[1:]
        self.totals = totals[-1].copy()
        return dirichlet_log_e(totals, self.null, self.strength * self.null)[:, None]

    def _clear(self) -> None:
        self.totals = np.zeros(len(self.null))

    def _state(self) -> dict[str, Any]:
        return {"totals": self.totals}

    def _settings(self) -> dict[str, Any]:
        return {"null": self.null.tolist(), "strength": self.strength}


# Means of any values: asymptotic confidence sequences.
# Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (arXiv:2103.06476; Annals of Statistics 52, 2024),
# Theorem 2.2:
# mean ± σ̂ √((nρ² + 1)/(n²ρ²) · ln((nρ² + 1)/α²))
# One-sided, the mixture is over positive effects only and the half width is σ̂ √(2 (nρ² +
# 1)/(n²ρ²) · ln(1 + √(nρ² + 1)/(2α))). The level is reached as the first look moves to later
# observations: it is asymptotic, and nothing is said before observation ``start``. Starting at
# 200, 3.4 % to 3.9 % of null streams of even outcomes, normal and exponential values raised an
# alarm within 5,000 looks at a nominal 5 % (starting at 100, up to 5 %), but 5 % of those with
# outcomes of share .1 and 8 % at .05, which must start later: :func:`start_for_share`. ρ makes the
# interval narrowest near observation ``sharpest``.


START = 200
_PER_SHARE = 50
_ITERATIONS = 100


def best_rho(n: int, *, confidence_level: float) -> float:
    """Return ρ with the narrowest two-sided interval at observation ``n``.

    The derivative of the width vanishes at nρ² = y with y = ln(1 + y) − 2 ln α, which is iterated.
    """
    check_level(confidence_level)
    twice = -2 * math.log(1 - confidence_level)
    y = twice
    for _ in range(_ITERATIONS):
        y = twice + math.log1p(y)
    return math.sqrt(y / n)


def start_for_share(share: float) -> int:
    """Return from which observation on the level is reached for binary outcomes: rare ones later.

    Raises
    ------
    DataError
        If the share is not strictly between 0 and 1.
    """
    if not 0 < share < 1:
        raise DataError(f"share {share!r} is outside (0, 1)")
    return max(START, math.ceil(_PER_SHARE / min(share, 1 - share)))


def asymptotic_margin(
    n: npt.ArrayLike, *, rho: float, confidence_level: float, one_sided: bool = False
) -> FloatArray:
    """Half width for values of variance 1, n at least 1."""
    n, alpha = np.asarray(n, np.float64), 1 - confidence_level
    grown = n * rho**2 + 1
    two_sided = np.log(grown / alpha**2)
    inner = 2 * np.log1p(np.sqrt(grown) / (2 * alpha)) if one_sided else two_sided
    return np.asarray(np.sqrt(grown / (n * rho) ** 2 * inner))


class AsymptoticTest(SequentialTest):
    """Is the mean of each group what it should be? Values without bounds, such as Relative Δ.

    Parameters
    ----------
    null : float or array_like of shape (groups,)
        Mean under the null.
    start : int
        First observation after which an alarm may be raised and an interval is given, at least 2.
    sharpest : int
        Observation near which the interval is narrowest.
    side : {"two-sided", "greater", "less"}
    confidence_level : float
        Reached asymptotically. ``log_e`` is the logarithm of the level at which the interval
        would just touch the null, 0 before ``start``.
    """

    kind = "asymptotic"
    bounded = False
    _sums: FloatArray

    def __init__(
        self,
        null: npt.ArrayLike = 0.0,
        *,
        start: int = START,
        sharpest: int = 500,
        side: Side = "two-sided",
        confidence_level: float = 0.95,
    ) -> None:
        check_side(side)
        self.null = np.atleast_1d(np.asarray(null, np.float64)).copy()
        if self.null.ndim != 1 or not np.isfinite(self.null).all():
            raise DataError(f"null must be one finite number per group, got {null!r}")
        if start < 2 or sharpest < 1:
            raise DataError(
                f"start must be at least 2 and sharpest at least 1, got {start} and {sharpest}"
            )
        self.start, self.sharpest, self.side = start, sharpest, side
        self.rho = best_rho(sharpest, confidence_level=confidence_level)
        super().__init__(groups=len(self.null), confidence_level=confidence_level)

    @property
    def mean(self) -> FloatArray:
        """Means so far, shape (groups,); NaN without observations."""
        return self.null + self._sums[0] / self.n if self.n else np.full(self.groups, np.nan)

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Confidence sequence of each mean at this moment; unbounded before ``start``."""
        half = np.full(self.groups, np.inf)
        if self.n >= self.start:
            one_sided = self.side != "two-sided"
            margin = asymptotic_margin(
                self.n, rho=self.rho, confidence_level=self.confidence_level, one_sided=one_sided
            )
            half = np.sqrt(self._variance(self._sums, self.n)) * margin
        endless = np.full(self.groups, np.inf)
        lower = -endless if self.side == "less" else self.mean - half
        return lower, endless if self.side == "greater" else self.mean + half

    @staticmethod
    def _variance(sums: FloatArray, n: FloatArray | int) -> FloatArray:
        return np.asarray(np.maximum(sums[1] / n - (sums[0] / n) ** 2, 0.0))

    def _advance(self, rows: FloatArray) -> FloatArray:
        # Differences from the null are summed: nothing cancels when it is far from 0.
        new = np.stack([rows - self.null, (rows - self.null) ** 2])
        path = np.cumsum(np.concatenate([self._sums[:, None], new], axis=1), axis=1)[:, 1:]
        self._sums = path[:, -1].copy()
        n = self.n + np.arange(1.0, len(rows) + 1)[:, None]
        variance, mean = self._variance(path, n), path[0] / n
        grown = n * self.rho**2 + 1
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = (n * self.rho * mean) ** 2 / variance / grown
            if self.side == "two-sided":
                log_e = (squared - np.log(grown)) / 2
            else:
                toward = mean > 0 if self.side == "greater" else mean < 0
                log_e = np.log(2 / np.sqrt(grown)) + _log_expm1(squared / 2)
                log_e = np.where(toward, log_e, -np.inf)
        log_e = np.maximum(np.where(np.isnan(log_e), 0.0, log_e), -700.0)
        return np.where((n >= self.start) & (variance > 0), log_e, 0.0)

    def _clear(self) -> None:
        self._sums = np.zeros((2, self.groups))

    def _state(self) -> dict[str, Any]:
        return {"_sums": self._sums}

    def _settings(self) -> dict[str, Any]:
        return {
            "null": self.null.tolist(),
            "start": self.start,
            "sharpest": self.sharpest,
            "side": self.side,
        }


def _log_expm1(x: FloatArray) -> FloatArray:
    """ln(eˣ − 1) without overflow."""
    return np.asarray(x + np.log(-np.expm1(-x)))

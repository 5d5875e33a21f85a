r"""Intervals for means and ratios of bounded values, from few or many independent units.

A unit (a query, or a cluster of queries) carries a numerator and a denominator; what is wanted is
the ratio of their expectations, a mean where every denominator is 1. The units are given random
Dirichlet weights, and one more unit is added that stands for what was not seen: the lowest
possible one for the lower end, the highest possible one for the upper end. The ends are quantiles
of the weighted ratio.

For values of 0 and 1 and a full extra unit this is the Clopper–Pearson interval; for any bounded
values it is Gaffke's bound (2005; Learned-Miller & Thomas 2019 on its coverage). A full unit is
needlessly cautious with 30 units and more, a half one rejects .08 instead of .05 where the only
deviations are rare and large; three quarters stay at .05 there (benchmarks/validity). Nothing is
switched by how many units differ, so the ends move smoothly with the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.inference.quantiles import check_level, normal_quantile

__all__ = ["BoundedRatio"]

FloatArray = npt.NDArray[np.float64]
_UNSEEN = 0.75  # weight of the unit that stands for what was not seen
_NEGLIGIBLE = 1e-12
_STEPS = 100
_CLOSE = 1e-8
_FAR = 40.0  # probits beyond it are certainty
_CENTRE = 1e-4  # |w| below which the tail formula is 0/0 and its limit is used


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedRatio:
    """Ratio of two sums over independent units, with what one unit could contribute at most.

    Parameters
    ----------
    numerator, denominator : float64 arrays of shape (n,)
        Denominators are at least 0 and not all 0.
    lowest, highest : tuple of float
        Numerator and denominator of the most extreme possible unit in either direction.
    information : float
        Share of a unit's independent information that each unit carries, in (0, 1]: below 1 where
        units depend on one another, such as queries that share documents.
    """

    numerator: FloatArray
    denominator: FloatArray
    lowest: tuple[float, float]
    highest: tuple[float, float]
    information: float = 1.0

    @property
    def estimate(self) -> float:
        """Ratio of the sums."""
        return float(self.numerator.sum()) / float(self.denominator.sum())

    def ends(self, confidence_level: float) -> tuple[float, float]:
        """Return the ends of the two-sided interval."""
        check_level(confidence_level)
        z = normal_quantile(0.5 + confidence_level / 2)
        estimate = self.estimate
        lower = self._end(-z, self.lowest, low=True)
        upper = self._end(z, self.highest, low=False)
        return min(lower, estimate), max(upper, estimate)

    def p_value(self, value: float = 0.0) -> float:
        """Two-sided p-value of the ratio being ``value``: the interval's level that just holds it."""
        from scipy.special import ndtr

        below = ndtr(self._probit(value, self.lowest))
        above = ndtr(-self._probit(value, self.highest))
        return float(min(2 * min(below, above), 1.0))

    def _end(self, target: float, extra: tuple[float, float], *, low: bool) -> float:
        """Ratio at which the weighted ratio lies below with probability Φ(target)."""
        estimate = self.estimate
        inner, outer = estimate, self._reach(extra, low=low)
        if abs(outer - inner) <= _NEGLIGIBLE * max(abs(inner), 1.0):
            return outer

        def distance(ratio: float) -> float:
            return min(max(self._probit(ratio, extra) - target, -_FAR), _FAR)

        last, at_last = inner, distance(inner)
        if (at_last > 0) != low:  # the estimate lies beyond the end already
            return inner
        residuals = self.numerator - estimate * self.denominator
        spread = math.sqrt(float(residuals @ residuals) / self.information + extra[0] ** 2)
        guess = inner + 2 * math.copysign(spread, -1 if low else 1) / float(self.denominator.sum())
        # Probits are nearly linear in the ratio: secant steps, kept between the brackets.
        for _ in range(_STEPS):
            if not min(inner, outer) < guess < max(inner, outer):
                guess = (inner + outer) / 2
            at_guess = distance(guess)
            if abs(at_guess) < _CLOSE or abs(outer - inner) < _CLOSE * (abs(inner) + abs(outer)):
                break
            if (at_guess > 0) == low:
                inner = guess
            else:
                outer = guess
            slope = (at_guess - at_last) / (guess - last) if guess != last else 0.0
            last, at_last = guess, at_guess
            guess = guess - at_guess / slope if slope > 0 and abs(at_guess) < _FAR else outer
        return guess

    def _reach(self, extra: tuple[float, float], *, low: bool) -> float:
        """Most extreme ratio that any unit, or the extra one, has on its own."""
        top = np.append(self.numerator, extra[0])
        bottom = np.append(self.denominator, extra[1])
        some = bottom > _NEGLIGIBLE
        ratios = top[some] / bottom[some]
        bound = float(ratios.min() if low else ratios.max())
        # A unit without a denominator can push the ratio further still.
        loose = top[~some]
        if np.any(loose < -_NEGLIGIBLE if low else loose > _NEGLIGIBLE):
            spread = float(np.abs(top).sum()) / max(float(bottom.sum()), _NEGLIGIBLE)
            bound += (-1 if low else 1) * 1e3 * max(spread, 1.0)
        return bound

    def _probit(self, ratio: float, extra: tuple[float, float]) -> float:
        """Φ⁻¹ of the probability that the weighted ratio lies at or below ``ratio``."""
        values = self.numerator - ratio * self.denominator
        values, shapes = _grouped(values, self.information)
        own = extra[0] - ratio * extra[1]
        return _gamma_sum_probit(np.append(values, own), np.append(shapes, _UNSEEN))


def _grouped(values: FloatArray, shape: float) -> tuple[FloatArray, FloatArray]:
    """Add up the shapes of equal values: ranking measures take few."""
    if len(values) < 64:
        return values, np.full(len(values), shape)
    unique, counts = np.unique(values, return_counts=True)
    return unique, shape * counts


def _gamma_sum_probit(values: FloatArray, shapes: FloatArray) -> float:
    """Φ⁻¹ of P(Σ G_i v_i ≤ 0) for independent gamma variables G_i of the given shapes.

    With two different values this is a beta probability; otherwise the saddlepoint approximation
    of Barndorff-Nielsen (r*), whose error is of third order in the number of units.
    """
    scale = float(np.abs(values).max(initial=0.0))
    used = np.abs(values) > _NEGLIGIBLE * max(scale, _NEGLIGIBLE)
    v, a = values[used] / max(scale, _NEGLIGIBLE), shapes[used]
    up, down = v > 0, v < 0
    if not up.any():
        return 0.0 if not down.any() else math.inf
    if not down.any():
        return -math.inf
    if np.ptp(v[up]) < _CLOSE and np.ptp(v[down]) < _CLOSE:
        return _beta_probit(
            float(a[up].sum()), float(a[down].sum()), float(v[up][0]), -float(v[down][0])
        )
    s = _saddlepoint(v, a)
    rest = 1 - s * v
    cumulant = -float(a @ np.log(rest))
    part = v / rest
    second = float(a @ part**2)
    w = math.copysign(math.sqrt(max(-2 * cumulant, 0.0)), s)
    if abs(w) < _CENTRE:
        third = 2 * float(a @ part**3)
        return w + third / (6 * second**1.5)
    u = s * math.sqrt(second)
    return w + math.log(u / w) / w


def _saddlepoint(v: FloatArray, a: FloatArray) -> float:
    """Root of Σ a v/(1 − s v), by Newton steps kept inside (1/min v, 1/max v)."""
    low, high = 1 / float(v.min()), 1 / float(v.max())
    s = 0.0
    for _ in range(_STEPS):
        part = v / (1 - s * v)
        first = float(a @ part)
        if first > 0:
            high = s
        else:
            low = s
        step = first / float(a @ part**2)
        new = s - step
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - s) <= _CLOSE * (1e-3 + abs(new)):
            return new
        s = new
    return s


def _beta_probit(up: float, down: float, high: float, low: float) -> float:
    """Φ⁻¹ of P(G_up · high ≤ G_down · low) for gamma variables of these shapes."""
    from scipy.special import betainc, ndtri

    below = betainc(up, down, low / (high + low))
    if below > 0.5:
        return -float(ndtri(betainc(down, up, high / (high + low))))
    return float(ndtri(below))

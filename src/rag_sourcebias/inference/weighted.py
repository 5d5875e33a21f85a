r"""Intervals for means and ratios of bounded values, from few or many independent units.

A unit (a query, or a cluster of queries) carries a numerator and a denominator; what is wanted is
the ratio of their expectations, a mean where every denominator is 1. The units are given random
Dirichlet weights, and one more unit is added that stands for what was not seen: the lowest
possible one for the lower end, the highest possible one for the upper end. The ends are quantiles
of the weighted ratio.

For values of 0 and 1 and a full extra unit this is the Clopper–Pearson interval; for any bounded
values it is Gaffke's bound (2005; Learned-Miller & Thomas 2019 on its coverage). A full unit is
needlessly cautious; with half a one a test of .05 rejects .07 where the only deviations are rare
and large. The weight used is about the smallest that keeps .05 there. Nothing is switched by how
many units differ, so the ends move smoothly with the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.inference.quantiles import check_level, normal_quantile
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["BoundedRatio"]

_UNSEEN = 0.65  # weight of the unit that stands for what was not seen
_NEGLIGIBLE = 1e-12
_STEPS = 100
_MANY = 4096  # units from which adding up equal ones pays for the sorting
_CLOSE = 1e-7
_SAME = 1e-9
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
    one_sided : bool
        Whether one end alone is used: it then has a full extra unit. Where a loss is too rare to
        be seen all error lies at one end, and with the weight for two ends a one-sided test of
        .05 would reject .09.
    """

    numerator: FloatArray
    denominator: FloatArray
    lowest: tuple[float, float]
    highest: tuple[float, float]
    information: float = 1.0
    one_sided: bool = False

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
        """Return the two-sided p-value of the ratio being ``value``.

        One minus the largest confidence level whose interval excludes it.
        """
        from scipy.special import ndtr

        below = ndtr(_probit(value, self._units(self.lowest))[0])
        above = ndtr(-_probit(value, self._units(self.highest))[0])
        return float(min(2 * min(below, above), 1.0))

    def _end(self, target: float, extra: tuple[float, float], *, low: bool) -> float:
        """Ratio at which the weighted ratio lies below with probability Φ(target)."""
        inner, outer = self.estimate, self._reach(extra, low=low)
        if abs(outer - inner) <= _NEGLIGIBLE * max(abs(inner), 1.0):
            return outer
        units = self._units(extra)
        residuals = self.numerator - inner * self.denominator
        spread = math.sqrt(float(residuals @ residuals) / self.information + extra[0] ** 2)
        guess = inner + 2 * math.copysign(spread, -1 if low else 1) / float(self.denominator.sum())
        near = 0.0
        for _ in range(_STEPS):
            if not min(inner, outer) < guess < max(inner, outer):
                guess = (inner + outer) / 2
            probit, slope, near = _probit(guess, units, near)
            distance = min(max(probit - target, -_FAR), _FAR)
            if abs(distance) < _CLOSE or abs(outer - inner) < _CLOSE * (abs(inner) + abs(outer)):
                break
            if (distance > 0) == low:
                inner = guess
            else:
                outer = guess
            guess = guess - distance / slope if slope > 0 and abs(distance) < _FAR else outer
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

    def _units(self, extra: tuple[float, float]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numerators, denominators and shapes of the units and the extra one; equal ones once."""
        rows = np.stack((self.numerator, self.denominator))
        counts: FloatArray = np.full(rows.shape[1], self.information)
        if rows.shape[1] >= _MANY:
            rows, repeated = np.unique(rows, axis=1, return_counts=True)
            counts = self.information * repeated.astype(np.float64)
        return (
            np.append(rows[0], extra[0]),
            np.append(rows[1], extra[1]),
            np.append(counts, 1.0 if self.one_sided else _UNSEEN),
        )


def _probit(
    ratio: float, units: tuple[FloatArray, FloatArray, FloatArray], near: float = 0.0
) -> tuple[float, float, float]:
    """Return Φ⁻¹ of P(Σ G_i (top_i − ratio · bottom_i) ≤ 0), about its slope, and the saddlepoint.

    The G_i are independent gamma variables of the given shapes. With two different values this is
    a beta probability; otherwise the saddlepoint approximation of Barndorff-Nielsen (r*), whose
    error is of third order in the number of units. ``near`` is a saddlepoint to start from.
    """
    top, bottom, shapes = units
    v = top - ratio * bottom
    lowest, highest = float(v.min()), float(v.max())
    tiny = _NEGLIGIBLE * max(-lowest, highest, _NEGLIGIBLE)
    if highest <= tiny:
        return (0.0 if lowest >= -tiny else math.inf), 0.0, 0.0
    if lowest >= -tiny:
        return -math.inf, 0.0, 0.0
    up, down = v == highest, v == lowest
    if np.all(up | down | (v == 0)):
        width = highest - lowest
        steep = (bottom[down][0] * width + lowest * (bottom[down][0] - bottom[up][0])) / width**2
        probit, density = _beta_probit(
            float(shapes[up].sum()), float(shapes[down].sum()), -lowest / width
        )
        return probit, float(steep) * density, 0.0
    s = _saddlepoint(v, shapes, lowest, highest, near)
    rest = 1 - s * v
    cumulant = -float(shapes @ np.log(rest))
    part = v / rest
    second = float(shapes @ part**2)
    # K' = 0 at s, so that K changes with the ratio as −s Σ a bottom/(1 − s v) does
    slope = float(shapes @ (bottom / rest)) / math.sqrt(second)
    w = math.copysign(math.sqrt(max(-2 * cumulant, 0.0)), s)
    if abs(w) < _CENTRE:
        third = 2 * float(shapes @ part**3)
        return w + third / (6 * second**1.5), slope, s
    u = s * math.sqrt(second)
    return w + math.log(u / w) / w, slope * u / w, s


def _saddlepoint(v: FloatArray, a: FloatArray, lowest: float, highest: float, near: float) -> float:
    """Root of Σ a v/(1 − s v), by Newton steps kept inside (1/min v, 1/max v)."""
    low, high = 1 / lowest, 1 / highest
    s = near if low < near < high else 0.0
    for _ in range(_STEPS):
        part = v / (1 - s * v)
        first = float(a @ part)
        if first > 0:
            high = s
        else:
            low = s
        step = first / float(a @ (part * part))
        new = s - step if low < s - step < high else (low + high) / 2
        if abs(new - s) <= _CLOSE * abs(new):
            return new
        s = new
    return s


def _beta_probit(up: float, down: float, x: float) -> tuple[float, float]:
    """Return Φ⁻¹ of P(B ≤ x) for a beta variable of these shapes, and its derivative in x."""
    from scipy.special import betainc, betaln, ndtri

    below = float(betainc(up, down, x))
    # the smaller tail keeps its digits
    probit = float(ndtri(below) if below < 0.5 else -ndtri(betainc(down, up, 1 - x)))
    log_density = (up - 1) * math.log(x) + (down - 1) * math.log1p(-x) - float(betaln(up, down))
    log_normal = -(probit**2 + math.log(2 * math.pi)) / 2
    return probit, math.exp(min(log_density - log_normal, _FAR))

"""What a series is held to. Every check returns a verdict and the numbers behind it.

Where an entry grades a check by its interval, a verdict needs the interval: it is CANNOT TELL where
the value lies on the right side and its interval does not, or where there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from entries import Check, Grade, Series

Verdict = tuple[str, str]  # "OK", "OKish", "CANNOT TELL" or "FAIL", and why
PASSED = ("OK", "OKish")
ROUNDING = 1e-9
DRAWS = 2_000


def rises(series: Series, *, tolerance: float, okish: float) -> Verdict:
    """The last value lies above the first, none more than ``tolerance`` below the one before."""
    steps = [b - a for a, b in zip(series.y, series.y[1:], strict=False)]
    if not steps or series.y[-1] <= series.y[0]:
        return "FAIL", f"does not rise: {_path(series)}"
    worst = min(steps)
    told = f"{_path(series)}; smallest step {worst:+.1f}"
    return _graded(-worst, tolerance, okish), told


def changes_sign(series: Series, *, tolerance: float = 0.0, interval: bool = False) -> Verdict:
    """Negative at the first x, positive at the last; OKish where one is within ``tolerance``."""
    first, last = series.y[0], series.y[-1]
    told = f"{_at(series, 0)} at {series.x[0]:g}, {_at(series, -1)} at {series.x[-1]:g}"
    if interval:
        return _sides(series, {0: -1, len(series.y) - 1: 1}, told)
    if first >= last:
        return "FAIL", told
    return _graded(max(first, -last), 0.0, tolerance), told


def crosses_zero(series: Series, *, last_x: float | None = None) -> Verdict:
    """Negative up to some x, positive from there on, which is at most ``last_x``."""
    points = [(x, y) for x, y in _points(series) if y]
    turns = [(a, b) for a, b in itertools.pairwise(points) if a[1] * b[1] < 0]
    if len(turns) == 1 and turns[0][0][1] < 0 and (last_x is None or turns[0][1][0] <= last_x):
        (x, y), (x2, y2) = turns[0]
        return "OK", f"between {x:g} and {x2:g}, linearly at {x - y * (x2 - x) / (y2 - y):.3g}"
    told = f"{len(turns)} changes of sign: {_path(series)}"
    held = [x for i, x in enumerate(series.x) if _holds_zero(series, i)]
    if not turns and held:
        return "CANNOT TELL", f"the interval holds 0 at {held}; {told}"
    return "FAIL", told


def keeps(series: Series, *, tolerance: float, okish: float) -> Verdict:
    """No value is more than ``tolerance`` percent below the first; OKish up to ``okish``."""
    losses = {x: 100 * (1 - y / series.y[0]) for x, y in _points(series)}
    x, worst = max(losses.items(), key=lambda item: item[1])
    told = f"{_path(series)}; largest loss {max(worst, 0):.1f} % at {x:g}"
    return _graded(worst, tolerance, okish), told


def signs(
    series: Series, *, positive: Sequence = (), negative: Sequence = (), interval: bool = False
) -> Verdict:
    """Values at these x have these signs. Values at other x are not asked."""
    wanted = dict.fromkeys(positive, 1) | dict.fromkeys(negative, -1)
    sides = {i: wanted[x] for i, x in enumerate(series.x) if x in wanted}
    if not sides:
        return "FAIL", f"none of {list(wanted)} among {list(series.x)}"
    told = ", ".join(f"{series.x[i]} {_at(series, i)}" for i in sides)
    if interval:
        return _sides(series, sides, told)
    return ("OK" if all(series.y[i] * side > 0 for i, side in sides.items()) else "FAIL"), told


def level(series: Series, *, margin: float, interval: bool = False) -> Verdict:
    """Every value lies within ``margin`` of 0."""
    return within(series, low=-margin, high=margin, zero=True, interval=interval)


def within(
    series: Series,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    okish: float = 0.0,
    zero: bool = False,
    interval: bool = False,
) -> Verdict:
    """Every value lies between the bounds; OKish where it misses them by up to ``okish``.

    With ``zero``, an interval that reaches beyond the bounds and excludes 0 fails.
    """
    misses = [(max(low - y, y - high), i) for i, y in enumerate(series.y)]
    miss, worst = max(misses)
    told = (
        f"{len(misses)} values, the one nearest to a bound or beyond it is "
        f"{_at(series, worst, '.4g')} at {series.x[worst]}"
    )
    if not interval:
        return _graded(miss, 0.0, okish), told
    if series.lower is None or series.upper is None:
        return "CANNOT TELL", f"no intervals: {told}"
    ends = list(zip(series.lower, series.upper, strict=True))
    if all(low <= a and b <= high for a, b in ends):
        return "OK", f"every interval lies inside: {told}"
    if any(b < low or a > high or (zero and not a <= 0 <= b) for a, b in ends):
        return "FAIL", told
    return "CANNOT TELL", f"an interval reaches beyond: {told}"


def largest(series: Series, *, of: Sequence, among: Sequence = (), okish: int = 0) -> Verdict:
    """The largest values are those at ``of``, in any order; OKish with ``okish`` others."""
    return _extreme(series, of, among, okish, sign=-1)


def smallest(series: Series, *, of: Sequence, among: Sequence = (), okish: int = 0) -> Verdict:
    """The smallest values are those at ``of``; OKish with ``okish`` others."""
    return _extreme(series, of, among, okish, sign=1)


def lowest_is(series: Series, *, one_of: Sequence, okish_rank: int = 1) -> Verdict:
    """The smallest value is at one of these x; OKish where one is among the ``okish_rank`` ones."""
    order = [x for x, _ in sorted(_points(series), key=lambda point: point[1])]
    lowest = min((y for x, y in _points(series) if x in one_of), default=math.inf)
    best = sum(y <= lowest for x, y in _points(series) if x not in one_of)
    told = f"lowest first: {', '.join(map(str, order[: max(3, okish_rank)]))}"
    return ("OK" if best == 0 else "OKish" if best < okish_rank else "FAIL"), told


def close(series: Series, theirs: Series, *, tolerance: float, okish: float) -> Verdict:
    """Every value is within ``tolerance`` of the published one at the same x."""
    known = dict(_points(theirs))
    gaps = {x: y - known[x] for x, y in _points(series) if x in known}
    return _largest_gap(gaps, "", tolerance, okish)


def near(series: Series, theirs: Series, *, tolerance: float, okish: float) -> Verdict:
    """Every value is within ``tolerance`` percent of the published one at the same x."""
    known = dict(_points(theirs))
    gaps = {x: 100 * (y / known[x] - 1) for x, y in _points(series) if known.get(x)}
    return _largest_gap(gaps, " %", tolerance, okish)


def _largest_gap(gaps: Mapping, unit: str, tolerance: float, okish: float) -> Verdict:
    if not gaps:
        return "FAIL", "no x in common with the published figures"
    x, worst = max(gaps.items(), key=lambda item: abs(item[1]))
    told = f"largest difference {worst:+.3g}{unit} at {x}, of {len(gaps)}"
    return _graded(abs(worst), tolerance, okish), told


def no_more(series: Series, theirs: Series, *, of: Sequence, okish: float = 0.0) -> Verdict:
    """Values at ``of`` are at most the published ones; OKish where larger by up to ``okish``."""
    return _one_sided(series, theirs, of, okish, sign=1)


def no_less(series: Series, theirs: Series, *, of: Sequence, okish: float = 0.0) -> Verdict:
    """Values at ``of`` are at least the published ones; OKish where smaller by up to ``okish``."""
    return _one_sided(series, theirs, of, okish, sign=-1)


def same_order(series: Series, theirs: Series, *, okish: int = 0) -> Verdict:
    """Values rank as the published ones; OKish with up to ``okish`` pairs turned round."""
    known = dict(_points(theirs))
    common = [(y, known[x]) for x, y in _points(series) if x in known]
    pairs = [(a, b) for i, a in enumerate(common) for b in common[i + 1 :]]
    turned = sum((a[0] - b[0]) * (a[1] - b[1]) <= 0 for a, b in pairs if a[1] != b[1])
    if not pairs:
        return "FAIL", "fewer than two x in common with the published figures"
    return _graded(turned, 0, okish), f"{turned} of {len(pairs)} pairs turned round"


SHAPES: dict[str, Callable[..., Verdict]] = {
    check.__name__: check
    for check in (
        rises,
        changes_sign,
        crosses_zero,
        keeps,
        signs,
        level,
        within,
        largest,
        smallest,
        lowest_is,
    )
}
"""Ask something of one series."""

COMPARISONS: dict[str, Callable[..., Verdict]] = {
    check.__name__: check for check in (close, near, no_more, no_less, same_order)
}
"""Compare a series with a published one, named by ``to``."""


BY_INTERVAL = ("changes_sign", "signs", "level", "within")
"""Checks that can be held to intervals."""

ORDERS = (
    "rises", "changes_sign", "crosses_zero", "largest", "smallest", "lowest_is", "same_order",
)  # fmt: skip


def verdict(
    check: Check, series: Series, published: Mapping[str, Series], *, printed: bool = False
) -> Verdict:
    """Make one check of one series; ``printed`` figures have no intervals to be held to."""
    parameters = dict(check.parameters)
    if check.kind in SHAPES:
        if check.kind in BY_INTERVAL:
            parameters["interval"] = check.grade == Grade.INTERVAL and not printed
        return SHAPES[check.kind](series, **parameters)
    if check.kind in COMPARISONS:
        return COMPARISONS[check.kind](series, published[parameters.pop("to")], **parameters)
    raise SystemExit(f"no check {check.kind!r}; there are {', '.join((*SHAPES, *COMPARISONS))}")


def chance(check: Check, series: Series, published: Mapping[str, Series]) -> float | None:
    """How often a check of an order or of signs passes without anything to find.

    An order by the same values in random order, signs by coins; None for other checks.
    """
    if check.grade != Grade.SIGN:
        return None
    if check.kind == "signs":
        asked = {*check.parameters.get("positive", ()), *check.parameters.get("negative", ())}
        return float(0.5 ** sum(x in asked for x in series.x))
    if check.kind not in ORDERS:
        return None
    passed = [
        verdict(check, replace(series, y=y, lower=None, upper=None), published)[0] in PASSED
        for y in _orders(series.y)
    ]
    return float(np.mean(passed))


def _orders(y: tuple[float, ...]) -> Iterable[tuple[float, ...]]:
    """All orders of a few values, some of many."""
    if math.factorial(len(y)) <= DRAWS:
        return itertools.permutations(y)
    rng = np.random.default_rng(0)
    return (tuple(rng.permutation(y).tolist()) for _ in range(DRAWS))


def _sides(series: Series, sides: Mapping[int, int], told: str) -> Verdict:
    """Intervals at these places lie on these sides of 0."""
    if series.lower is None or series.upper is None:
        return "CANNOT TELL", f"no intervals: {told}"
    ends = {i: (series.lower[i], series.upper[i]) for i in sides}
    nearest = [(low if sides[i] > 0 else -high) for i, (low, high) in ends.items()]
    furthest = [(high if sides[i] > 0 else -low) for i, (low, high) in ends.items()]
    if min(nearest) > 0:
        return "OK", told
    return ("FAIL" if min(furthest) < 0 else "CANNOT TELL"), told


def _graded(miss: float, tolerance: float, okish: float) -> str:
    miss -= ROUNDING
    return "OK" if miss <= tolerance else "OKish" if miss <= okish else "FAIL"


def _extreme(series: Series, of: Sequence, among: Sequence, okish: int, *, sign: int) -> Verdict:
    points = [(x, y) for x, y in _points(series) if not among or x in among]
    ordered = sorted(points, key=lambda point: sign * point[1])
    if len(ordered) <= len(of):
        return "FAIL", f"only {len(ordered)} values"
    found, rest = ordered[: len(of)], ordered[len(of) :]
    told = f"{'largest' if sign < 0 else 'smallest'} first: {', '.join(str(x) for x, _ in found)}"
    if found[-1][1] == rest[0][1]:
        return "FAIL", f"a tie decides; {told}"
    return _graded(sum(x not in of for x, _ in found), 0, okish), told


def _one_sided(series: Series, theirs: Series, of: Sequence, okish: float, *, sign: int) -> Verdict:
    known = dict(_points(theirs))
    asked = [(x, y, known[x]) for x, y in _points(series) if x in of and x in known]
    if not asked:
        return "FAIL", f"none of {list(of)} in both"
    worst = max(sign * (y - bound) for _, y, bound in asked)
    told = ", ".join(f"{x}: {y:.4g} beside {bound:.4g}" for x, y, bound in asked)
    return _graded(worst, 0.0, okish), told


def _holds_zero(series: Series, i: int) -> bool:
    return bool(series.lower and series.upper and series.lower[i] <= 0 <= series.upper[i])


def _at(series: Series, i: int, form: str = "+.3g") -> str:
    """A value with its interval."""
    value = format(series.y[i], form)
    if series.lower is None or series.upper is None:
        return value
    return f"{value} [{series.lower[i]:.3g}, {series.upper[i]:.3g}]"


def _points(series: Series) -> list[tuple]:
    return list(zip(series.x, series.y, strict=True))


def _path(series: Series) -> str:
    return ", ".join(f"{y:.1f}" for y in series.y)

"""What a series is held to. Every check returns a verdict and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from entries import Check, Series

__all__ = ["COMPARISONS", "SHAPES", "Verdict", "verdict"]

Verdict = tuple[str, str]  # "OK", "OKish" or "FAIL", and why
ROUNDING = 1e-9


def rises(series: Series, *, tolerance: float, okish: float) -> Verdict:
    """No value lies more than ``tolerance`` below the one before it; OKish up to ``okish``."""
    steps = [b - a for a, b in zip(series.y, series.y[1:], strict=False)]
    if not steps:
        return "FAIL", "one value does not rise"
    worst = min(steps)
    told = f"{_path(series)}; smallest step {worst:+.1f}"
    return _graded(-worst, tolerance, okish), told


def changes_sign(series: Series, *, tolerance: float = 0.0) -> Verdict:
    """Negative at the first x, positive at the last; OKish where one is within ``tolerance``."""
    first, last = series.y[0], series.y[-1]
    told = f"{first:+.1f} at {series.x[0]:g}, {last:+.1f} at {series.x[-1]:g}"
    return _graded(max(first, -last), 0.0, tolerance), told


def crosses_zero(series: Series, *, last_x: float | None = None) -> Verdict:
    """0 lies between the values of two neighbouring x, up to ``last_x``;

    OKish where only an interval holds it.
    """
    for (x, y), (x2, y2) in zip(_points(series), _points(series)[1:], strict=False):
        if y <= 0 <= y2 and (last_x is None or x2 <= last_x):
            at = x if y2 == y else x - y * (x2 - x) / (y2 - y)
            return "OK", f"between {x:g} and {x2:g}, linearly at {at:.3g}"
    if series.lower and series.upper:
        ends = zip(series.x, series.lower, series.upper, strict=True)
        held = [x for x, low, high in ends if low <= 0 <= high]
        if held:
            return "OKish", f"the means do not cross 0, the interval holds it at {held}"
    return "FAIL", f"no crossing: {_path(series)}"


def keeps(series: Series, *, tolerance: float, okish: float) -> Verdict:
    """No value is more than ``tolerance`` percent below the first; OKish up to ``okish``."""
    losses = {x: 100 * (1 - y / series.y[0]) for x, y in _points(series)}
    x, worst = max(losses.items(), key=lambda item: item[1])
    told = f"{_path(series)}; largest loss {max(worst, 0):.1f} % at {x:g}"
    return _graded(worst, tolerance, okish), told


def signs(
    series: Series, *, positive: Sequence = (), negative: Sequence = (), okish: float = 0.0
) -> Verdict:
    """Values at these x have these signs; OKish where each wrong one is within ``okish`` or its

    interval holds 0. Values at other x are not asked.
    """
    wanted = dict.fromkeys(positive, 1) | dict.fromkeys(negative, -1)
    found = [(i, x, y) for i, (x, y) in enumerate(_points(series)) if x in wanted]
    if not found:
        return "FAIL", f"none of {list(wanted)} among {list(series.x)}"
    told = ", ".join(f"{x} {y:+.3g}" for _, x, y in found)
    wrong = [(i, y) for i, x, y in found if y * wanted[x] <= 0]
    if not wrong:
        return "OK", told
    excused = all(abs(y) <= okish or _holds_zero(series, i) for i, y in wrong)
    return "OKish" if excused else "FAIL", told


def level(series: Series, *, okish: float = 0.0) -> Verdict:
    """Every interval holds 0; OKish where the value is within ``okish`` all the same."""
    apart = [(x, y) for i, (x, y) in enumerate(_points(series)) if not _holds_zero(series, i)]
    told = ", ".join(f"{x} {y:+.3g}" for x, y in _points(series))
    if not apart:
        return "OK", f"every interval holds 0: {told}"
    within = all(abs(y) <= okish for _, y in apart)
    return "OKish" if within else "FAIL", f"apart from 0 at {[x for x, _ in apart]}: {told}"


def within(
    series: Series, *, low: float = -math.inf, high: float = math.inf, okish: float = 0.0
) -> Verdict:
    """Every value lies between the bounds; OKish where it misses them by up to ``okish``."""
    misses = [(max(low - y, y - high), x, y) for x, y in _points(series)]
    miss, x, y = max(misses, key=lambda found: found[0])
    told = f"{len(misses)} values, the one nearest to a bound or beyond it is {y:.4g} at {x}"
    return _graded(miss, 0.0, okish), told


def largest(series: Series, *, of: Sequence, among: Sequence = (), okish: int = 0) -> Verdict:
    """The largest values are those at ``of``, in any order; OKish with ``okish`` others."""
    return _extreme(series, of, among, okish, sign=-1)


def smallest(series: Series, *, of: Sequence, among: Sequence = (), okish: int = 0) -> Verdict:
    """The smallest values are those at ``of``; OKish with ``okish`` others."""
    return _extreme(series, of, among, okish, sign=1)


def lowest_is(series: Series, *, one_of: Sequence, okish_rank: int = 1) -> Verdict:
    """The smallest value is at one of these x; OKish where one is among the ``okish_rank`` ones."""
    order = [x for x, _ in sorted(_points(series), key=lambda point: point[1])]
    best = min((order.index(x) for x in one_of if x in order), default=len(order))
    told = f"lowest first: {', '.join(map(str, order[: max(3, okish_rank)]))}"
    return ("OK" if best == 0 else "OKish" if best < okish_rank else "FAIL"), told


def close(series: Series, theirs: Series, *, tolerance: float, okish: float) -> Verdict:
    """Every value is within ``tolerance`` of the published one at the same x."""
    known = dict(_points(theirs))
    gaps = {x: y - known[x] for x, y in _points(series) if x in known}
    if not gaps:
        return "FAIL", "no x in common with the published figures"
    x, worst = max(gaps.items(), key=lambda item: abs(item[1]))
    return _graded(abs(worst), tolerance, okish), f"largest difference {worst:+.3g} at {x}"


def near(series: Series, theirs: Series, *, tolerance: float, okish: float) -> Verdict:
    """Every value is within ``tolerance`` percent of the published one at the same x."""
    known = dict(_points(theirs))
    gaps = {x: 100 * (y / known[x] - 1) for x, y in _points(series) if known.get(x)}
    if not gaps:
        return "FAIL", "no x in common with the published figures"
    x, worst = max(gaps.items(), key=lambda item: abs(item[1]))
    return _graded(abs(worst), tolerance, okish), f"largest difference {worst:+.3g} % at {x}"


def covers(series: Series, theirs: Series, *, okish: int = 0) -> Verdict:
    """Every interval of ours holds the other value; OKish where up to ``okish`` do not."""
    known = dict(_points(theirs))
    if series.lower is None or series.upper is None:
        return "FAIL", "no intervals"
    rows = zip(series.x, series.lower, series.upper, strict=True)
    asked = [(x, low, high) for x, low, high in rows if x in known]
    outside = [x for x, low, high in asked if not low <= known[x] <= high]
    if not asked:
        return "FAIL", "no x in common with the other figures"
    return _graded(len(outside), 0, okish), f"{len(asked) - len(outside)} of {len(asked)} held"


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
    turned = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs)
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
    check.__name__: check for check in (close, near, covers, no_more, no_less, same_order)
}
"""Compare a series with a published one, named by ``to``."""


def verdict(check: Check, series: Series, published: Mapping[str, Series]) -> Verdict:
    """Make one check of one series."""
    parameters = dict(check.parameters)
    if check.kind in SHAPES:
        return SHAPES[check.kind](series, **parameters)
    if check.kind in COMPARISONS:
        return COMPARISONS[check.kind](series, published[parameters.pop("to")], **parameters)
    raise SystemExit(f"no check {check.kind!r}; there are {', '.join((*SHAPES, *COMPARISONS))}")


def _graded(miss: float, tolerance: float, okish: float) -> str:
    miss -= ROUNDING
    return "OK" if miss <= tolerance else "OKish" if miss <= okish else "FAIL"


def _extreme(series: Series, of: Sequence, among: Sequence, okish: int, *, sign: int) -> Verdict:
    points = [(x, y) for x, y in _points(series) if not among or x in among]
    order = [x for x, _ in sorted(points, key=lambda point: sign * point[1])]
    if len(order) <= len(of):
        return "FAIL", f"only {len(order)} values"
    found = order[: len(of)]
    others = [x for x in found if x not in of]
    word = "largest" if sign < 0 else "smallest"
    return _graded(len(others), 0, okish), f"{word} first: {', '.join(map(str, found))}"


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


def _points(series: Series) -> list[tuple]:
    return list(zip(series.x, series.y, strict=True))


def _path(series: Series) -> str:
    return ", ".join(f"{y:.1f}" for y in series.y)

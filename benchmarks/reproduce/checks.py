"""What a series is held to. Every check returns a verdict and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def close(series: Series, theirs: Series, *, tolerance: float, okish: float) -> Verdict:
    """Every value is within ``tolerance`` of the published one at the same x."""
    known = dict(_points(theirs))
    gaps = {x: y - known[x] for x, y in _points(series) if x in known}
    if not gaps:
        return "FAIL", "no x in common with the published figures"
    x, worst = max(gaps.items(), key=lambda item: abs(item[1]))
    return _graded(abs(worst), tolerance, okish), f"largest difference {worst:+.3g} at {x}"


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
    check.__name__: check for check in (rises, changes_sign, crosses_zero, keeps)
}
"""Ask something of one series."""

COMPARISONS: dict[str, Callable[..., Verdict]] = {
    check.__name__: check for check in (close, same_order)
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


def _points(series: Series) -> list[tuple]:
    return list(zip(series.x, series.y, strict=True))


def _path(series: Series) -> str:
    return ", ".join(f"{y:.1f}" for y in series.y)

"""Where the width of an interval comes from, and what would narrow it."""

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.values import FloatArray, Interval, t_quantile
from rag_sourcebias.judged.comparisons import JudgedValues
from rag_sourcebias.judged.data import NextStep, VarianceLedger
from rag_sourcebias.stats.samples import judge_correlation

MORE_LABELS = 10
MORE_ITEMS = 1000
MORE_RUNS = 3
_FEWEST = 10  # labelled units from which a variance can be divided up


def ledger_of(values: JudgedValues, interval: Interval) -> VarianceLedger | None:
    """Divide the variance of an estimated mean; None where there is nothing to divide.

    Had people labelled every unit, the variance would be that of a mean of T = n + N units (items,
    or clusters): the part of the items, 0 where these very items are the target. The rest is there
    because they labelled n of them: it falls with 1/n − 1/T. Of it, the judges' (or the votes')
    differing on an item makes β²·s²/R·(1/n − 1/T), with slope β, variance s² within an item and R
    of them. Where clusters hold several items, the part of the items is divided into that between
    clusters and that within.
    """
    unit, others = _units(values.design, len(values.y), len(values.f_unlabeled))
    n, total = len(np.unique(unit)), len(np.unique(np.concatenate([unit, others])))
    if n < _FEWEST or interval.half_width <= 0 or total == n:
        return None
    between, within, residual = _spread(values.y, values.f, unit)
    drawn = float(interval.target == "population")
    items, inside = drawn * between / total, drawn * within / total
    labels = residual * (1 / n - 1 / total)
    judges, runs = _judges(values)
    apart = min(judges, residual) * (1 / n - 1 / total)
    variance = items + inside + labels
    if variance <= 0:
        return None
    return VarianceLedger(
        items=items / variance,
        within_clusters=inside / variance if len(unit) > n else None,
        labels=(labels - apart) / variance,
        judges=apart / variance if runs > 1 else None,
        next=_next_steps(interval, (n, total), (items + inside, residual, judges), runs),
    )


def _units(
    design: dict[str, npt.NDArray[np.str_]], n: int, n_pool: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Codes of the independent units of labelled and other items."""
    if "clusters" not in design:
        return np.arange(n), np.arange(n, n + n_pool)
    codes = np.unique(
        np.concatenate([design["clusters"], design["clusters_unlabeled"]]), return_inverse=True
    )[1].astype(np.int64)
    return codes[:n], codes[n:]


def _quantile(interval: Interval, n: int) -> float:
    return t_quantile(0.5 + interval.confidence_level / 2, float(max(n - 2, 1)))


def _spread(
    y: FloatArray, f: FloatArray, unit: npt.NDArray[np.int64]
) -> tuple[float, float, float]:
    """Variance of unit means between units, from within them, and about the judge's prediction."""
    codes = np.unique(unit, return_inverse=True)[1]
    size = np.bincount(codes)
    n = len(size)
    means = np.bincount(codes, weights=y) / size
    whole = float(means.var(ddof=1))
    r = judge_correlation(means, np.bincount(codes, weights=f) / size)
    residual = whole * min((1 - r * r) * (n - 1) / max(n - 2, 1), 1.0)
    free = len(y) - n
    if not free:
        return whole, 0.0, residual
    inside = float(((y - means[codes]) ** 2).sum()) / free / float(size.mean())
    inside = min(inside, whole)
    return whole - inside, inside, residual


def _judges(values: JudgedValues) -> tuple[float, int]:
    """Variance that the judges differing on an item adds to a prediction; and their number."""
    if values.judges is None:
        return 0.0, 1
    votes = values.judges
    scale = np.nanstd(votes, axis=0)
    usable = votes[:, scale > 0] / scale[scale > 0]
    runs = usable.shape[1]
    several = (~np.isnan(usable)).sum(axis=1) > 1
    if runs < 2 or not several.any():
        return 0.0, runs
    usable = (usable - np.nanmean(usable, axis=0)) * scale[scale > 0].mean()
    apart = float(np.nanvar(usable[several], axis=1, ddof=1).mean())
    f = values.f - values.f.mean()
    power = float(f @ f)
    slope = float(f @ values.y) / power if power > 0 else 0.0
    return slope**2 * apart / runs, runs


def _next_steps(
    interval: Interval,
    units: tuple[int, int],
    parts: tuple[float, float, float],
    runs: int,
) -> tuple[NextStep, ...]:
    """Half-widths after more labels, more judged items and more runs of the judge."""
    n, total = units
    items, residual, judges = parts

    def variance(n_new: int, total_new: int, runs_new: int) -> float:
        left = residual - min(judges, residual) * (1 - runs / runs_new)
        return items * total / total_new + left * (1 / n_new - 1 / total_new)

    def half(n_new: int, total_new: int, runs_new: int = runs) -> float:
        change = variance(n_new, total_new, runs_new) / variance(n, total, runs)
        quantiles = _quantile(interval, n_new) / _quantile(interval, n)
        return interval.half_width * quantiles * float(np.sqrt(max(change, 0.0)))

    more = min(MORE_LABELS, total - n)
    found = [NextStep(what="labels", n=more, half_width=half(n + more, total))]
    if interval.target == "population":
        found.append(NextStep(what="items", n=MORE_ITEMS, half_width=half(n, total + MORE_ITEMS)))
    if runs > 1:
        found.append(
            NextStep(what="judges", n=MORE_RUNS, half_width=half(n, total, runs + MORE_RUNS))
        )
    return tuple(found)

"""Pieces both judged evaluations share: one mean, its worth, and what other sizes would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import SourceBiasError
from rag_sourcebias.intervals.coverage import coverage_study
from rag_sourcebias.intervals.default import MIN_LABELED, SCORE_FORM
from rag_sourcebias.intervals.mean import Method, mean_interval
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_parts import CoveragePoint, JudgedMean

__all__ = ["JudgedValues", "judged_mean", "labels_saved", "resampled_curves"]

_SIZES = (10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500)
_CURVE_METHODS = ("regression", "labels", "ppi-paper")


class JudgedValues:
    """Human values of some units and judge values of all, for one system and measure.

    Parameters
    ----------
    y : float64 array of shape (n_units,)
        NaN where there is no human label.
    f : float64 array of shape (n_units,)
        No NaN.
    clusters, strata : sequences of length n_units, or None
    """

    def __init__(
        self,
        y: FloatArray,
        f: FloatArray,
        *,
        clusters: Sequence[str] | None = None,
        strata: Sequence[str] | None = None,
    ) -> None:
        self.labeled = ~np.isnan(y)
        self.y = y[self.labeled]
        self.f = f[self.labeled]
        self.f_unlabeled = f[~self.labeled]
        self.all_f = f
        self.design: dict[str, npt.NDArray[np.str_]] = {}
        for name, column in (("clusters", clusters), ("strata", strata)):
            if column is not None:
                values = np.asarray(column)
                self.design[name] = values[self.labeled]
                self.design[f"{name}_unlabeled"] = values[~self.labeled]


def judged_mean(
    measure: str,
    system: str,
    values: JudgedValues,
    config: JudgedConfig,
    *,
    bounds: tuple[float, float] | None = None,
    interval: Interval | None = None,
) -> JudgedMean:
    """Estimate one mean by the configured method, and by labels alone beside it."""
    found = interval or _interval(values, config, config.method, bounds)
    try:
        alone = _interval(values, config, "labels", bounds)
    except SourceBiasError:
        alone = None
    return JudgedMean(
        measure=measure,
        system=system,
        interval=found,
        labels_alone=alone,
        judge_alone=float(values.all_f.mean()),
        labels_saved=labels_saved(found, alone),
    )


def _interval(
    values: JudgedValues, config: JudgedConfig, method: str, bounds: tuple[float, float] | None
) -> Interval:
    design = dict(values.design) if method in ("regression", "labels") else {}
    return mean_interval(
        values.y,
        values.f,
        values.f_unlabeled,
        method=_method(method),
        target=config.target,
        confidence_level=config.confidence_level,
        bounds=bounds if method in ("regression", "labels") else None,
        rng=config.seed,
        **design,  # type: ignore[arg-type]
    )


def _method(name: str) -> Method:
    return name  # type: ignore[return-value]  # mean_interval names the valid ones


def labels_saved(interval: Interval, alone: Interval | None) -> int | None:
    """Labels that labels alone would need for the same precision, less those used.

    The width of a mean falls with the square root of the number of labels. Score intervals of
    bounded values also change with the estimate itself, so for them the variance that the
    correlation with the judge takes away is compared instead.
    """
    if alone is None or interval.half_width <= 0 or alone.half_width <= 0:
        return None
    n, pool, r = interval.n_labeled, interval.n_unlabeled, interval.correlation
    ratio = (alone.half_width / interval.half_width) ** 2
    if interval.method == SCORE_FORM and r is not None:
        left = (1 - r * r) * (n - 1) / (n - 2)
        if interval.target == "population":
            left += r * r * n / (n + pool)
        # a judge that never parts from people spares labelling the whole pool, and no more
        return round(min(n / left - n, pool)) if left > 0 else pool
    return round(n * (ratio - 1))


def resampled_curves(
    measure: str,
    system: str,
    values: JudgedValues,
    config: JudgedConfig,
    *,
    bounds: tuple[float, float] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> tuple[CoveragePoint, ...]:
    """Width and coverage at other numbers of labels, resampling the labelled units.

    The labelled units stand in for the population, with as many unlabelled ones as there are.
    Nothing is returned with fewer than 20 labels, which cannot stand in for anything.
    """
    n, n_pool = len(values.y), len(values.f_unlabeled)
    varied = n >= 2 * MIN_LABELED and np.ptp(values.y) > 0 and np.ptp(values.f) > 0
    if not varied or config.coverage_runs < 1 or n_pool < 2:
        return ()
    if on_stage is not None:
        on_stage(f"width against labels: {measure} {system}".rstrip())
    study = coverage_study(
        values.y,
        values.f,
        sizes=[size for size in _SIZES if size <= max(n, 2 * MIN_LABELED)],
        methods=_CURVE_METHODS,
        n_unlabeled=min(n_pool, 5000),
        n_runs=config.coverage_runs,
        clusters=values.design.get("clusters"),
        bounds=bounds,
        confidence_level=config.confidence_level,
        rng=config.seed,
    )
    return tuple(
        CoveragePoint(
            measure=measure,
            system=system,
            method=cell.method,
            n=cell.n,
            coverage=cell.coverage,
            mean_width=cell.mean_width,
        )
        for cell in study.cells
    )

"""Intervals for items a judge scored and people labelled in part, such as answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.judged.item_comparisons import group_differences
from rag_sourcebias.audit.judged.means import JudgedValues, judged_mean, resampled_curves
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.intervals.checks import check_items
from rag_sourcebias.intervals.scale_checks import check_scale
from rag_sourcebias.judges.audit import audit_judge
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JUDGED_SCHEMA_VERSION, JudgedConfig, JudgedReport
from rag_sourcebias.types.judged_items import JudgedItems
from rag_sourcebias.types.judged_parts import CoveragePoint, JudgedMean

__all__ = ["judge_items_with_intervals"]

Missing = Literal["mean", "worst-case"]


def judge_items_with_intervals(
    items: JudgedItems,
    *,
    measure: str = "score",
    config: JudgedConfig | None = None,
    name: str = "items",
    bounds: tuple[float, float] | None = None,
    missing: Missing = "mean",
    on_stage: Callable[[str], None] | None = None,
) -> JudgedReport:
    """Put intervals on the mean human value of judged items, for each group and between groups.

    Each group (system, source) is corrected by its own human labels.

    Parameters
    ----------
    items : JudgedItems
        With ``groups``, each has its mean, and groups are compared in pairs: paired by cluster
        where a cluster holds one item of each group, unpaired otherwise.
    bounds : tuple of float, optional
        Range of the human values; labels outside it are refused.
    missing : {"mean", "worst-case"}
        What an item counts for to which the judge gave no value. ``"mean"``: the mean judge
        value, which keeps the interval valid whatever made the judge fail, as the labelled items
        are drawn from all items. ``"worst-case"``: the hull of the intervals with all of them at
        the lowest and all at the highest judge value.

    Raises
    ------
    InsufficientDataError
        With too few labels for any interval.
    DataError
        If no item is labelled, or a label is outside the bounds.
    """
    config = config or JudgedConfig()
    begin = on_stage or (lambda _: None)
    if missing not in ("mean", "worst-case"):
        raise DataError(f"missing {missing!r} is not one of mean, worst-case")
    if not items.n_labeled:
        raise InsufficientDataError(
            f"none of the {len(items)} items has a human label; label at least 10, drawn at random",
            n=0,
            n_needed=10,
        )
    if not items.judged.any():
        raise DataError(f"none of the {len(items)} items has a judge value")
    if bounds is not None:
        check_scale(items.human, *bounds, ids=items.ids)
    groups = _groups(items)
    begin(f"intervals for {len(groups)} mean(s)")
    means: list[JudgedMean] = []
    curves: list[CoveragePoint] = []
    for system, rows in groups.items():
        found, points = _one_mean(
            items.take(rows),
            measure,
            system,
            config=config,
            bounds=bounds,
            missing=missing,
            on_stage=on_stage,
        )
        means.append(found)
        curves.extend(points)
    begin("comparisons and judge audit")
    return JudgedReport(
        schema_version=JUDGED_SCHEMA_VERSION,
        kind="items",
        name=name,
        config=config,
        n_labeled=items.n_labeled,
        n_unlabeled=items.n_unlabeled,
        n_judge_missing=items.n_judge_missing,
        means=tuple(means),
        comparisons=group_differences(items, groups, means, measure, config),
        per_query=(),
        curves=tuple(curves),
        audits=_audits(items, measure, config),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=_warnings(items, missing),
    )


def _groups(items: JudgedItems) -> dict[str, npt.NDArray[np.int64]]:
    """Rows of each group, in order of first appearance; one group named "" without groups."""
    if items.groups is None:
        return {"": np.arange(len(items))}
    names = dict.fromkeys(items.groups)
    column = np.asarray(items.groups)
    return {group: np.flatnonzero(column == group) for group in names}


def _one_mean(
    items: JudgedItems,
    measure: str,
    system: str,
    *,
    config: JudgedConfig,
    bounds: tuple[float, float] | None,
    missing: Missing,
    on_stage: Callable[[str], None] | None,
) -> tuple[JudgedMean, tuple[CoveragePoint, ...]]:
    clusters = items.clusters
    if clusters is not None and len(set(clusters)) == len(clusters):
        clusters = None  # one item each: ordinary independent items
    known = items.judge[items.judged]
    if not len(known):
        known = np.zeros(1)

    def values(fill: float) -> JudgedValues:
        judge = np.where(items.judged, items.judge, fill)
        return JudgedValues(items.human, judge, clusters=clusters, strata=items.strata)

    try:
        middle = values(float(known.mean()))
        if missing == "mean" or items.judged.all():
            found = judged_mean(measure, system, middle, config, bounds=bounds)
        else:
            ends = [
                judged_mean(measure, system, values(float(fill)), config, bounds=bounds)
                for fill in (known.min(), known.max())
            ]
            hull = _hull([end.interval for end in ends], items.n_judge_missing)
            found = judged_mean(measure, system, middle, config, bounds=bounds, interval=hull)
    except InsufficientDataError as error:
        where = f"group {system!r}: " if system else ""
        raise InsufficientDataError(f"{where}{error}", n=error.n, n_needed=error.n_needed) from None
    return found, resampled_curves(
        measure, system, middle, config, bounds=bounds, on_stage=on_stage
    )


def _hull(intervals: list[Interval], n_missing: int) -> Interval:
    note = f"worst case over {n_missing} item(s) without a judge value"
    first = intervals[0]
    return replace(
        first,
        estimate=sum(i.estimate for i in intervals) / len(intervals),
        lower=min(i.lower for i in intervals),
        upper=max(i.upper for i in intervals),
        notes=(*first.notes, note),
    )


def _audits(items: JudgedItems, measure: str, config: JudgedConfig) -> dict[str, JudgeAudit]:
    try:
        audit = audit_judge(items, confidence_level=config.confidence_level, rng=config.seed)
    except InsufficientDataError:
        return {}
    return {measure: audit}


def _warnings(items: JudgedItems, missing: Missing) -> tuple[str, ...]:
    found: list[str] = []
    if items.n_judge_missing:
        first = items.ids[int(np.flatnonzero(~items.judged)[0])]
        treated = (
            "they count with the mean judge value, which costs precision but not validity"
            if missing == "mean"
            else "the intervals cover the worst case"
        )
        found.append(
            f"the judge gave no value for {items.n_judge_missing} of {len(items)} items, first "
            f"{first!r}; {treated}"
        )
    found += check_items(items)
    return tuple(found)

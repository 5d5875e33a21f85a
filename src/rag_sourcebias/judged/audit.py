"""Audit of a judged evaluation: intervals of means, comparisons and single queries."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import LabelDistributions, Qrels, Run, TagTable
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    SourceBiasError,
)
from rag_sourcebias.core.values import (
    FloatArray,
    IntArray,
    Interval,
    environment,
    normal_quantile,
)
from rag_sourcebias.judged.data import (
    JUDGED_SCHEMA_VERSION,
    CoveragePoint,
    JudgeAudit,
    JudgedComparison,
    JudgedConfig,
    JudgedMean,
    JudgedReport,
    QueryIntervals,
)
from rag_sourcebias.judged.judge_audit import audit_judge, calibration_of, rows_of
from rag_sourcebias.judged.plan import ASSURANCE, residual_share
from rag_sourcebias.stats.coverage import coverage_study
from rag_sourcebias.stats.crc import JudgedRanking, measure_bounds, parse_measure
from rag_sourcebias.stats.crc_intervals import per_query_intervals
from rag_sourcebias.stats.means import (
    MIN_LABELED,
    Method,
    difference_interval,
    judged_relative_delta_interval,
    mean_interval,
    unpaired_difference_interval,
)
from rag_sourcebias.stats.regression import has_spread
from rag_sourcebias.stats.samples import check_items, check_random_labels, check_scale

# Pieces both judged evaluations share: one mean, its worth, and what other sizes would give.


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
        labels_saved=labels_saved(found, alone, values),
    )


def _interval(
    values: JudgedValues, config: JudgedConfig, method: str, bounds: tuple[float, float] | None
) -> Interval:
    design = dict(values.design) if method in ("regression", "labels") else {}
    return mean_interval(
        values.y,
        values.f,
        values.f_unlabeled,
        method=cast("Method", method),  # mean_interval names the valid ones
        target=config.target,
        confidence_level=config.confidence_level,
        bounds=bounds if method in ("regression", "labels") else None,
        rng=config.seed,
        **design,  # type: ignore[arg-type]
    )


def labels_saved(interval: Interval, alone: Interval | None, values: JudgedValues) -> int | None:
    """Labels that labels alone would need for the same width, less those used; at least.

    The width falls with the square root of the number of labels. What the judge explains is taken
    at a lower 80 % bound; fewer than 10 labels, and labels that all agree, show no saving.
    """
    if alone is None or interval.half_width <= 0 or alone.half_width <= 0:
        return None
    n, pool = interval.n_labeled, interval.n_unlabeled
    if n < MIN_LABELED or not has_spread(values.y):
        return 0
    gain = (alone.half_width / interval.half_width) ** 2
    if gain > 1:
        left, error = residual_share(values.y, values.f, clusters=values.design.get("clusters"))
        most = min(left * math.exp(normal_quantile(ASSURANCE) * error), 1.0)
        judged = n / (n + pool) if interval.target == "population" else 0.0
        gain *= (left + (1 - left) * judged) / (most + (1 - most) * judged)
        gain = max(gain, 1.0)
    # of a pool, no more than all of it need be labelled
    share = n / (n + pool) if interval.target == "pool" else 0.0
    return round(n / (share + (1 - share) / gain) - n)


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


# Runs beside human and judge labels.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedSystem:
    """A run beside both kinds of labels; ``place`` is the judge's index of each human query."""

    name: str
    human: JudgedRanking
    judge: JudgedRanking
    place: IntArray

    def values(
        self,
        measure: str,
        config: JudgedConfig,
        source: tuple[IntArray, IntArray, int] | None = None,
    ) -> JudgedValues:
        """Human and judge values of every query; of one source where codes are given."""
        counted = (None, None) if source is None else tuple(c == source[2] for c in source[:2])
        y = np.full(len(self.judge.labels.query_ids), np.nan)
        y[self.place] = self.human.values(
            measure, gain=config.gain, min_grade=config.min_grade, counted=counted[0]
        )
        f = self.judge.values(
            measure, gain=config.gain, min_grade=config.min_grade, counted=counted[1]
        )
        bounds = measure_bounds(measure)
        if bounds is not None:
            y = np.clip(y, *bounds)  # beyond them only by rounding
        return JudgedValues(y, f)


def judged_systems(
    runs: Run | Sequence[Run], human: Qrels, judge: LabelDistributions
) -> list[JudgedSystem]:
    """Join every run with both kinds of labels, after checking that the ids fit."""
    listed = [runs] if isinstance(runs, Run) else list(runs)
    if not listed:
        raise DataError("no run given")
    names = [run.name for run in listed]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"two runs are called {twice!r}; give each run its own name")
    codes = {query: code for code, query in enumerate(judge.query_ids)}
    missing = [query for query in human.query_ids if query not in codes]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(human.query_ids)} queries with human labels have no judge "
            f"labels, first {missing[0]!r} (the judge's first query is {judge.query_ids[0]!r}); "
            "judge the labelled queries too: they correct the judge"
        )
    place = np.array([codes[query] for query in human.query_ids], dtype=np.int64)
    truth = LabelDistributions.from_qrels(human, n_grades=judge.n_grades)
    return [
        JudgedSystem(
            name=run.name,
            human=JudgedRanking.join(run, truth),
            judge=JudgedRanking.join(run, judge),
            place=place,
        )
        for run in listed
    ]


def unjudged_notes(systems: Sequence[JudgedSystem], cutoff: int) -> list[str]:
    """Say how many retrieved documents nobody, or no judge, labelled."""
    found = []
    for system in systems:
        for who, ranking in (("people", system.human), ("the judge", system.judge)):
            missing = ranking.unjudged(cutoff)
            total = int(np.minimum(ranking.n_retrieved, cutoff).sum())
            if missing.any():
                query = ranking.labels.query_ids[int(np.argmax(missing > 0))]
                found.append(
                    f"{system.name}: {int(missing.sum())} of {total} retrieved documents through "
                    f"rank {cutoff} have no label by {who}, first for query {query!r}; they count "
                    "as not relevant"
                )
    return found


# Systems, and sources within a system, compared on judged rankings.


def system_differences(
    systems: Sequence[JudgedSystem],
    measures: Sequence[str],
    cells: dict[tuple[str, str], JudgedValues],
    config: JudgedConfig,
    warnings: list[str],
) -> list[JudgedComparison]:
    """Differences of all pairs of systems, or of each with the first where there are many."""
    names = [system.name for system in systems]
    pairs = list(combinations(names, 2))
    if len(names) > 6:
        pairs = pairs[: len(names) - 1]
    found = []
    for measure in measures:
        for first, second in pairs:
            sides = [cells[measure, first], cells[measure, second]]
            try:
                interval = difference_interval(
                    np.stack([side.y for side in sides], axis=1),
                    np.stack([side.f for side in sides], axis=1),
                    np.stack([side.f_unlabeled for side in sides], axis=1),
                    target=config.target,
                    confidence_level=config.confidence_level,
                    bounds=measure_bounds(measure),
                )
            except InsufficientDataError as error:
                warnings.append(f"difference of {first} and {second} ({measure}): {error}")
                continue
            found.append(
                JudgedComparison(
                    kind="difference",
                    measure=measure,
                    system="",
                    first=first,
                    second=second,
                    interval=interval,
                )
            )
    return found


def relative_deltas(
    systems: Sequence[JudgedSystem],
    measures: Sequence[str],
    tags: TagTable,
    *,
    baseline: str,
    config: JudgedConfig,
    warnings: list[str],
) -> list[JudgedComparison]:
    """Relative Δ of each other source against the baseline; adds to ``warnings`` what failed."""
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    others = [source for source in tags.sources if source != baseline]
    found = []
    for system in systems:
        codes = [source_of_rows(side.labels, tags) for side in (system.human, system.judge)]
        untagged = int(np.count_nonzero(codes[1] < 0))
        if untagged:
            warnings.append(f"{untagged} judged pairs have no source tag and count for no source")
        for measure in measures:
            for other in others:
                sides = [
                    system.values(measure, config, (codes[0], codes[1], tags.sources.index(source)))
                    for source in (baseline, other)
                ]
                try:
                    interval = judged_relative_delta_interval(
                        np.stack([side.y for side in sides], axis=1),
                        np.stack([side.f for side in sides], axis=1),
                        np.stack([side.f_unlabeled for side in sides], axis=1),
                        target=config.target,
                        confidence_level=config.confidence_level,
                    )
                except InsufficientDataError as error:
                    warnings.append(f"Relative Δ of {measure} ({system.name}, {other}): {error}")
                    continue
                found.append(
                    JudgedComparison(
                        kind="relative_delta",
                        measure=measure,
                        system=system.name,
                        first=baseline,
                        second=other,
                        interval=interval,
                    )
                )
    return found


def source_of_rows(labels: LabelDistributions, tags: TagTable) -> IntArray:
    """Return the source code of each labelled pair, -1 where it is unknown."""
    rows = tags.rows_for(labels.doc_ids)
    codes = np.where(rows >= 0, tags.source_codes[np.maximum(rows, 0)], -1)
    of_rows: IntArray = codes[labels.doc_codes].astype(np.int64)
    return of_rows


# How the judge grades documents beside how people do.


def grade_audits(
    human: Qrels, judge: LabelDistributions, tags: TagTable | None, config: JudgedConfig
) -> dict[str, JudgeAudit]:
    """Compare grades pair by pair, by source where tags are given."""
    truth = LabelDistributions.from_qrels(human, n_grades=judge.n_grades)
    rows = rows_of(truth, judge)
    shared = rows >= 0
    if np.count_nonzero(shared) < 1:
        return {}
    grades = np.arange(judge.n_grades, dtype=np.float64)
    queries = truth.query_codes[shared].astype(np.int64)
    groups = None
    if tags is not None:
        names = (*tags.sources, "untagged")
        groups = [names[code] for code in source_of_rows(truth, tags)[shared]]
    try:
        audit = audit_judge(
            (truth.probs @ grades)[shared],
            (judge.probs @ grades)[rows[shared]],
            groups=groups,
            clusters=queries,
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
    except InsufficientDataError:
        return {}
    calibration = calibration_of(
        judge.probs[rows[shared]],
        truth.probs[shared],
        clusters=queries,
        confidence_level=config.confidence_level,
        rng=config.seed,
    )
    return {"grades": replace(audit, calibration=calibration)}


# Groups of judged items compared.


def group_differences(
    items: JudgedItems,
    groups: dict[str, npt.NDArray[np.int64]],
    means: list[JudgedMean],
    measure: str,
    config: JudgedConfig,
    *,
    bounds: tuple[float, float] | None,
    warnings: list[str],
) -> tuple[JudgedComparison, ...]:
    """Differences of all pairs of groups, or of each with the first where there are many.

    Adds to ``warnings`` which pairs on shared items have too few labels.
    """
    by_name = dict(zip(groups, means, strict=True))
    pairs = list(combinations(groups, 2))
    if len(groups) > 6:
        pairs = pairs[: len(groups) - 1]
    found = []
    for first, second in pairs:
        try:
            interval = _paired(items, groups[first], groups[second], config, bounds)
        except InsufficientDataError as error:
            warnings.append(f"difference of {first} and {second}: {error}")
            continue
        if interval is None:
            interval = unpaired_difference_interval(
                by_name[first].interval, by_name[second].interval
            )
        found.append(
            JudgedComparison(
                kind="difference",
                measure=measure,
                system="",
                first=first,
                second=second,
                interval=interval,
            )
        )
    return tuple(found)


def _paired(
    items: JudgedItems,
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    config: JudgedConfig,
    bounds: tuple[float, float] | None,
) -> Interval | None:
    """Difference on the clusters that hold one item of each group; None without any."""
    if items.clusters is None or config.method != "regression":
        return None
    rows = [{items.clusters[i]: int(i) for i in group} for group in (first, second)]
    if len(rows[0]) != len(first) or len(rows[1]) != len(second):
        return None  # a cluster holds several items of one group
    shared = [key for key in rows[0] if key in rows[1]]
    if len(shared) < max(len(first), len(second)):
        return None  # on part of the items the difference would be another one
    index = np.array([[row[key] for row in rows] for key in shared])
    human = items.human[index]
    judge = np.where(items.judged, items.judge, np.nanmean(items.judge))[index]
    labeled = ~np.isnan(human).any(axis=1)
    strata = None if items.strata is None else np.asarray(items.strata)[index[:, 0]]
    return difference_interval(
        human[labeled],
        judge[labeled],
        judge[~labeled],
        target=config.target,
        confidence_level=config.confidence_level,
        bounds=bounds,
        strata=None if strata is None else strata[labeled],
        strata_unlabeled=None if strata is None else strata[~labeled],
    )


# Intervals for items a judge scored and people labelled in part, such as answers.


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
    warnings = list(_warnings(items, missing))
    comparisons = group_differences(
        items, groups, means, measure, config, bounds=bounds, warnings=warnings
    )
    return JudgedReport(
        schema_version=JUDGED_SCHEMA_VERSION,
        kind="items",
        name=name,
        config=config,
        n_labeled=items.n_labeled,
        n_unlabeled=items.n_unlabeled,
        n_judge_missing=items.n_judge_missing,
        means=tuple(means),
        comparisons=comparisons,
        per_query=(),
        curves=tuple(curves),
        audits=_audits(items, measure, config),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(warnings),
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


# Intervals of single queries for a judged ranking.


def query_intervals(
    system: str,
    measure: str,
    *,
    human: JudgedRanking,
    judge: JudgedRanking,
    place: npt.NDArray[np.int64],
    config: JudgedConfig,
) -> QueryIntervals:
    """Give every query of the judge an interval by the default conformal rule.

    Parameters
    ----------
    place : int64 array
        Index of each human query among the judge's.

    Raises
    ------
    CalibrationError
        With too few labelled queries for the confidence level.
    """
    labels = judge.ranked_labels(measure, gain=config.gain, min_grade=config.min_grade)
    y = human.values(measure, gain=config.gain, min_grade=config.min_grade)
    found = per_query_intervals(
        labels.take(place), y, labels, confidence_level=config.confidence_level
    )
    known = np.full(labels.n_queries, np.nan)
    known[place] = y
    return QueryIntervals(
        measure=measure,
        system=system,
        query_ids=judge.labels.query_ids,
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        human=known,
        highest=float(
            labels.total(np.full(len(labels.weights), labels.gains[-1])).max(initial=0.0)
        ),
        rule=found.rule,
        confidence_level=config.confidence_level,
        assumptions=found.assumptions,
    )


# Intervals for rankings whose documents a judge labelled and people labelled for some queries.


def judge_ranking_with_intervals(
    runs: Run | Sequence[Run],
    human: Qrels,
    judge: LabelDistributions,
    *,
    measures: Sequence[str] = ("NDCG@10",),
    tags: TagTable | None = None,
    baseline_source: str = "human",
    config: JudgedConfig | None = None,
    name: str = "ranking",
    on_stage: Callable[[str], None] | None = None,
) -> JudgedReport:
    """Put intervals on ranking measures when people judged some queries and a judge all.

    Parameters
    ----------
    runs : Run or sequence of Run
        With several, systems are compared in pairs on the same queries.
    human : Qrels
        Its queries are the labelled ones; each is judged through the largest cutoff, and what is
        not judged counts as not relevant (it is counted and reported).
    judge : LabelDistributions
        Labels of every query, those of ``human`` among them.
    measures : sequence of str
        ``DCG@k``, ``NDCG@k``, ``P@k``, ``MAP@k``, ``MRR@k``, ``Recall@k``. For all but DCG and P
        the judge must have labelled the whole pool.
    tags : TagTable, optional
        Sources of the documents: adds Relative Δ of each other source against
        ``baseline_source``, every source corrected by its own human labels.

    Raises
    ------
    DataError
        If queries with human labels have no judge labels (how many, which first), a human grade
        is outside the judge's scale, or a measure is unknown.
    InsufficientDataError
        With too few labelled queries for any interval.
    """
    config = config or JudgedConfig()
    begin = on_stage or (lambda _: None)
    systems = judged_systems(runs, human, judge)
    cutoffs = [parse_measure(measure)[1] for measure in measures]
    if not cutoffs:
        raise DataError("no measure asked for, such as NDCG@10")
    means: list[JudgedMean] = []
    curves: list[CoveragePoint] = []
    warnings = unjudged_notes(systems, max(cutoffs))
    cells: dict[tuple[str, str], JudgedValues] = {}
    for measure in measures:
        for system in systems:
            begin(f"{measure} of {system.name}")
            values = system.values(measure, config)
            cells[measure, system.name] = values
            asked = (measure, system.name, values, config)
            bounds = measure_bounds(measure)
            means.append(judged_mean(*asked, bounds=bounds))
            curves.extend(resampled_curves(*asked, bounds=bounds, on_stage=begin))
    first = cells[measures[0], systems[0].name]
    warnings += check_random_labels(first.f, first.f_unlabeled)
    begin("comparisons")
    comparisons = [*system_differences(systems, measures, cells, config, warnings)]
    if tags is not None:
        comparisons += relative_deltas(
            systems, measures, tags, baseline=baseline_source, config=config, warnings=warnings
        )
    begin("intervals of single queries")
    per_query = _per_query(systems, measures, config, warnings) if config.per_query else []
    begin("judge audit")
    return JudgedReport(
        schema_version=JUDGED_SCHEMA_VERSION,
        kind="ranking",
        name=name,
        config=config,
        n_labeled=len(human.query_ids),
        n_unlabeled=len(judge.query_ids) - len(human.query_ids),
        n_judge_missing=0,
        means=tuple(means),
        comparisons=tuple(comparisons),
        per_query=tuple(per_query),
        curves=tuple(curves),
        audits=grade_audits(human, judge, tags, config),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(warnings),
    )


def _per_query(
    systems: Sequence[JudgedSystem],
    measures: Sequence[str],
    config: JudgedConfig,
    warnings: list[str],
) -> list[QueryIntervals]:
    found = []
    for measure in measures:
        if parse_measure(measure)[0] not in ("DCG", "P"):
            continue
        for system in systems:
            try:
                found.append(
                    query_intervals(
                        system.name,
                        measure,
                        human=system.human,
                        judge=system.judge,
                        place=system.place,
                        config=config,
                    )
                )
            except CalibrationError as error:
                warnings.append(f"no intervals of single queries for {measure}: {error}")
    return found


# One verb for judged evaluations, of items or of rankings.


@overload
def judge_with_intervals(
    data: JudgedItems,
    /,
    **options: Any,  # noqa: ANN401 - as the two functions declare
) -> JudgedReport: ...
@overload
def judge_with_intervals(
    data: Run | Sequence[Run],
    human: Qrels,
    judge: LabelDistributions,
    /,
    **options: Any,  # noqa: ANN401
) -> JudgedReport: ...
def judge_with_intervals(
    data: JudgedItems | Run | Sequence[Run],
    human: Qrels | None = None,
    judge: LabelDistributions | None = None,
    /,
    **options: Any,
) -> JudgedReport:
    """Put intervals on an evaluation that a judge made and people checked in part.

    Parameters
    ----------
    data : JudgedItems, or Run or sequence of Run
        Items with human and judge values
        (:func:`~rag_sourcebias.judged.judge_items_with_intervals`), or rankings
        (:func:`~rag_sourcebias.judged.judge_ranking_with_intervals`).
    human : Qrels
        For rankings: judgments by people, of some queries.
    judge : LabelDistributions
        For rankings: labels by the judge, of all queries.
    **options
        Those of the two functions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(5, 2, 500)
    >>> human = np.where(np.arange(500) < 50, truth, np.nan)
    >>> items = JudgedItems(ids=tuple(map(str, range(500))), human=human, judge=truth + 1)
    >>> report = judge_with_intervals(items, measure="quality")
    >>> print(report.mean("quality").interval.method)
    regression on the judge
    """
    if isinstance(data, JudgedItems):
        if human is not None or judge is not None:
            raise DataError("items carry their human and judge values; give nothing beside them")
        return judge_items_with_intervals(data, **options)
    if human is None or judge is None:
        raise DataError("runs need human judgments (Qrels) and judge labels (LabelDistributions)")
    return judge_ranking_with_intervals(data, human, judge, **options)

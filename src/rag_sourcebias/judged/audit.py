"""Audit of a judged evaluation: intervals of means, comparisons and single queries."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray, LabelDistributions, Qrels, Run, TagTable
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    SourceBiasError,
    if_enough,
)
from rag_sourcebias.core.finding import Evidence, EvidenceText, Interval, telling
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import (
    MIN_LABELED,
    Method,
    SystemComparison,
    compare_systems,
    difference_interval,
    judged_relative_delta_interval,
    labels_for,
    mean_interval,
    unpaired_difference_interval,
)
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.infer.samples import (
    check_items,
    check_random_labels,
    check_scale,
    has_spread,
    how_drawn,
    judge_correlation,
    residual_share,
)
from rag_sourcebias.intake.belong import require_meeting, require_tags
from rag_sourcebias.judged.crc import (
    LINEAR,
    JudgedRanking,
    RankedLabels,
    crc_mean_interval,
    measure_bounds,
    parse_measure,
    per_query_intervals,
    two_grades,
)
from rag_sourcebias.judged.data import (
    JudgeAudit,
    JudgedComparison,
    JudgedConfig,
    JudgedMean,
    JudgedRanks,
    QueryIntervals,
)
from rag_sourcebias.judged.judge_audit import (
    audit_judge,
    judge_warnings,
    rows_of,
    same_scale,
)
from rag_sourcebias.judged.page import JudgedReport
from rag_sourcebias.judged.plan import ASSURANCE
from rag_sourcebias.measure.relevance import source_codes_for


class JudgedValues:
    """Human values of some units and judge values of all, for one system and measure.

    Parameters
    ----------
    y : float64 array of shape (n_units,)
        NaN where there is no human label.
    f : float64 array of shape (n_units,)
        No NaN.
    clusters : sequence of length n_units, or None
    labels : RankedLabels or None
        The label distributions behind f, where there are such: what CRC perturbs.
    judges : float64 array of shape (n_units, p), or None
        Several judges, of which ``f`` is the mean; NaN where one failed.
    """

    def __init__(
        self,
        y: FloatArray,
        f: FloatArray,
        *,
        clusters: Sequence[str] | None = None,
        labels: RankedLabels | None = None,
        judges: FloatArray | None = None,
    ) -> None:
        self.human = y
        self.labeled = ~np.isnan(y)
        self.labels = labels
        self.judges = judges
        self.y = y[self.labeled]
        self.f = f[self.labeled]
        self.f_unlabeled = f[~self.labeled]
        self.all_f = f
        self.design: dict[str, npt.NDArray[np.str_]] = {}
        if clusters is not None:
            values = np.asarray(clusters)
            self.design["clusters"] = values[self.labeled]
            self.design["clusters_unlabeled"] = values[~self.labeled]


# Systems compared on the items they share, all at once.


_IN_SIGHT = 20  # times today's labels, beyond which no number of labels is named


class Compared(NamedTuple):
    """Differences of systems, their ranks, and what was refused."""

    differences: list[JudgedComparison]
    ranks: list[JudgedRanks]
    warnings: list[str]


def compare(
    sides: Mapping[str, JudgedValues],
    measure: str,
    config: JudgedConfig,
    bounds: tuple[float, float] | None,
    found: Compared,
) -> None:
    """Compare systems whose values lie in the same order of items, and add what is found.

    Two have one difference; more have differences that hold all at once, and ranks. What has too
    few labels is a warning.
    """
    names = list(sides)
    y, f, pool = _columns(sides.values())
    options: dict[str, Any] = {
        "target": config.target, "confidence_level": config.confidence_level, "bounds": bounds,
    }  # fmt: skip
    try:
        if len(names) == 2:
            interval = difference_interval(y, f, pool, **options)
            found.differences.append(_difference(measure, names[0], names[1], interval))
            return
        if config.baseline:
            options["baseline"] = names.index(config.baseline)
        several = compare_systems(y, f, pool, rng=config.seed, **options)
    except InsufficientDataError as error:
        who = " and ".join(names) if len(names) == 2 else f"{len(names)} systems"
        found.warnings.append(f"differences of {who} ({measure}): {error}")
        return
    for i, (first, second) in enumerate(zip(several.first, several.second, strict=True)):
        interval = Interval(
            estimate=float(several.difference[i]),
            lower=float(several.lower[i]),
            upper=float(several.upper[i]),
            confidence_level=config.confidence_level,
            method=InferCode.DIFFERENCES(),
            target=config.target,
            n_labeled=several.n_labeled,
            n_unlabeled=several.n_unlabeled,
            assumptions=(InferCode.LABELS_SAMPLED(), InferCode.SAME_ITEMS()),
            correlation=judge_correlation(y[:, first] - y[:, second], f[:, first] - f[:, second]),
        )
        found.differences.append(
            _difference(measure, names[first], names[second], interval, family=len(several.first))
        )
    if not config.baseline:
        found.ranks.append(_ranks(names, measure, several, config))


def _columns(sides: Collection[JudgedValues]) -> Iterator[FloatArray]:
    """Yield human and judge values of labelled units, and those of others; a column per side."""
    for name in ("y", "f", "f_unlabeled"):
        yield np.stack([getattr(side, name) for side in sides], axis=1)


def require_baseline(baseline: str, names: Sequence[str], what: str) -> None:
    """Refuse a baseline that none of the systems is."""
    if baseline and baseline not in names:
        raise DataError(f"no {what} is called {baseline!r}; there are {list(names)}")


def _difference(
    measure: str, first: str, second: str, interval: Interval, *, family: int = 1
) -> JudgedComparison:
    return JudgedComparison(
        kind="difference",
        measure=measure,
        system="",
        first=first,
        second=second,
        interval=interval,
        family=family,
    )


def in_order(means: list[JudgedMean], ranks: Sequence[JudgedRanks]) -> tuple[JudgedMean, ...]:
    """Put means of each measure into the order of the ranks of the first one."""
    if not ranks:
        return tuple(means)
    place = {name: at for at, name in enumerate(ranks[0].systems)}
    measures = list(dict.fromkeys(mean.measure for mean in means))
    return tuple(sorted(means, key=lambda m: (measures.index(m.measure), place[m.system])))


def _ranks(
    names: Sequence[str],
    measure: str,
    found: SystemComparison,
    config: JudgedConfig,
) -> JudgedRanks:
    order = np.argsort(-found.score, kind="stable").tolist()
    tau, lower, upper = found.tau
    return JudgedRanks(
        measure=measure,
        systems=tuple(names[i] for i in order),
        score=tuple(found.score[order].tolist()),
        best=tuple(found.best[order].tolist()),
        worst=tuple(found.worst[order].tolist()),
        tau=tau,
        tau_lower=lower,
        tau_upper=upper,
        confidence_level=config.confidence_level,
        n_labeled=found.n_labeled,
        to_tell=_labels_to_tell(found, set(order[:2])),
    )


def _labels_to_tell(found: SystemComparison, top: set[int]) -> int | None:
    """Return the labels that would tell two systems apart; None where there are enough, or no end.

    The interval of their difference narrows with the square root of the labels.
    """
    pairs = zip(found.first.tolist(), found.second.tolist(), strict=True)
    place = next(i for i, pair in enumerate(pairs) if set(pair) == top)
    gap = abs(float(found.difference[place]))
    half = float(found.upper[place] - found.lower[place]) / 2
    if not gap < half <= math.sqrt(_IN_SIGHT) * gap:
        return None
    return math.ceil(found.n_labeled * (half / gap) ** 2)


# Groups of judged items compared.


def group_differences(
    items: JudgedItems,
    groups: dict[str, npt.NDArray[np.int64]],
    means: list[JudgedMean],
    measure: str,
    config: JudgedConfig,
    *,
    bounds: tuple[float, float] | None,
) -> Compared:
    """Compare groups: on the items they share where all share all, by their means otherwise."""
    names = list(groups)
    found = Compared([], [], [])
    if config.baseline and not items.groups:
        raise DataError(f"no group is called {config.baseline!r}; the items have no group column")
    require_baseline(config.baseline, names, "group")
    if len(names) < 2:
        return found
    if config.method == "crc":  # of two intervals that are too short none is made
        found.warnings.append("groups are not compared: CRC has no interval of a difference")
        return found
    index = _shared(items, list(groups.values()), config.method)
    if index is not None:
        human = items.human[index]
        labeled = ~np.isnan(human).any(axis=1)
        human[~labeled] = np.nan  # an item labelled for some systems only is no pair
        judge = np.where(items.judged, items.judge, np.nan)[index]
        judge = np.where(np.isnan(judge), np.nanmean(judge, axis=0), judge)
        sides = {name: JudgedValues(human[:, k], judge[:, k]) for k, name in enumerate(names)}
        compare(sides, measure, config, bounds, found)
        return found
    interval_of = {name: mean.interval for name, mean in zip(groups, means, strict=True)}
    pairs = list(combinations(names, 2))
    if config.baseline:
        pairs = [(name, config.baseline) for name in names if name != config.baseline]
    family = len(pairs)
    why = _why_apart(items, config.method)
    warning = f"{len(names)} groups are compared as independent samples ({measure}): {why}"
    needed = labels_for(family)
    if min(interval.n_labeled for interval in interval_of.values()) < needed:
        found.warnings.append(f"{warning}; {family} differences need {needed} labels of each")
        return found
    for first, second in pairs:
        interval = unpaired_difference_interval(
            interval_of[first], interval_of[second], family=family
        )
        found.differences.append(_difference(measure, first, second, interval, family=family))
    found.warnings.append(warning)
    return found


def _why_apart(items: JudgedItems, method: str) -> str:
    """Say why differences are not of pairs."""
    if items.clusters is None:
        return "no cluster column tells which items they share"
    if method != "regression":
        return f"method {method!r} does not pair items"
    return "pairs need each group once in every cluster"


def _shared(
    items: JudgedItems, groups: Sequence[npt.NDArray[np.int64]], method: str
) -> npt.NDArray[np.int64] | None:
    """Rows of each shared item, one column per group; None unless all groups have the same items.

    On part of the items a difference would be another one.
    """
    if items.clusters is None or method != "regression":
        return None
    rows = [{items.clusters[i]: int(i) for i in group} for group in groups]
    once = all(len(row) == len(group) for row, group in zip(rows, groups, strict=True))
    if once and all(row.keys() == rows[0].keys() for row in rows):
        return np.array([[row[key] for row in rows] for key in rows[0]])
    return None


# Pieces both judged evaluations share: one mean, and its worth.


def judged_mean(
    measure: str,
    system: str,
    values: JudgedValues,
    config: JudgedConfig,
    *,
    bounds: tuple[float, float] | None = None,
) -> JudgedMean:
    """Estimate one mean by the configured method, and by labels alone beside it."""
    found = _interval(values, config, config.method, bounds)
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
        labels_saved=None if config.method == "crc" else labels_saved(found, alone, values),
    )


def _interval(
    values: JudgedValues, config: JudgedConfig, method: str, bounds: tuple[float, float] | None
) -> Interval:
    level = config.confidence_level
    if method == "crc":
        if values.design:
            raise DataError("method 'crc' takes units that are independent, no clusters")
        labels = values.labels or two_grades(values.all_f, bounds)
        known, others = (
            labels.take(np.flatnonzero(rows)) for rows in (values.labeled, ~values.labeled)
        )
        return crc_mean_interval(known, values.y, others, confidence_level=level)
    options: dict[str, Any] = {"target": config.target, "confidence_level": level}
    if method in ("regression", "labels"):
        options |= {"bounds": bounds, **values.design}
    f, f_unlabeled = values.f, values.f_unlabeled
    if values.judges is not None and method == "regression":
        f, f_unlabeled = values.judges[values.labeled], values.judges[~values.labeled]
    return mean_interval(
        values.y,
        f,
        f_unlabeled,
        method=cast("Method", method),  # mean_interval names the valid ones
        rng=config.seed,
        **options,
    )


def labels_saved(interval: Interval, alone: Interval | None, values: JudgedValues) -> int | None:
    """Labels that labels alone would need for the same width, less those used; at least.

    The width falls with the square root of the number of labels. What the judge explains is taken
    at a lower 80 % bound, and no more is saved than that explains, whatever the form of the two
    intervals; fewer than 10 labels, and labels that all agree, show no saving.
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
        rest = most + (1 - most) * judged
        gain = max(min(gain * (left + (1 - left) * judged), 1.0) / rest, 1.0)
    # of a pool, no more than all of it need be labelled
    share = n / (n + pool) if interval.target == "pool" else 0.0
    return round(n / (share + (1 - share) / gain) - n)


# Runs beside human and judge labels.


class JudgedSystem(NamedTuple):
    """A run beside both kinds of labels; ``place`` is the judge's index of each human query.

    ``several`` are the judges of which ``judge`` is the mean, where there are more than one.
    """

    name: str
    human: JudgedRanking
    judge: JudgedRanking
    place: IntArray
    several: tuple[JudgedRanking, ...]

    def values(
        self,
        measure: str,
        config: JudgedConfig,
        source: tuple[IntArray, IntArray, int] | None = None,
    ) -> JudgedValues:
        """Human and judge values of every query; of one source where codes are given."""
        counted = (None, None) if source is None else tuple(c == source[2] for c in source[:2])
        scale: dict[str, Any] = {"gain": config.gain, "min_grade": config.min_grade}
        y = np.full(len(self.judge.labels.query_ids), np.nan)
        y[self.place] = self.human.values(measure, counted=counted[0], **scale)
        f = self.judge.values(measure, counted=counted[1], **scale)
        bounds = measure_bounds(measure)
        y = y if bounds is None else np.clip(y, *bounds)  # beyond them only by rounding
        if source is not None:
            return JudgedValues(y, f)
        labels = self.judge.ranked_labels(measure, **scale) if config.method == "crc" else None
        judges = None
        if self.several:
            judges = np.full((len(f), len(self.several)), np.nan)
            row_of = {query: row for row, query in enumerate(self.judge.labels.query_ids)}
            for column, judge in enumerate(self.several):
                rows = [row_of[query] for query in judge.labels.query_ids]
                judges[rows, column] = judge.values(measure, **scale)
        return JudgedValues(y, f, labels=labels, judges=judges)


def judged_systems(
    runs: Sequence[Run],
    human: Qrels,
    judge: LabelDistributions,
    judges: Collection[LabelDistributions],
) -> list[JudgedSystem]:
    """Join every run with both kinds of labels, after checking that the ids fit."""
    require_meeting("the judgments", human, "the labels", judge)
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
            several=tuple(JudgedRanking.join(run, labels) for labels in judges),
        )
        for run in runs
    ]


def unjudged_notes(systems: Sequence[JudgedSystem], cutoff: int) -> Iterator[str]:
    """Say of how many runs documents are missing, or have no label, with the worst of them."""
    empty = [(s.name, s.judge, s.judge.n_retrieved == 0) for s in systems]
    yield from _lacking(empty, "judged queries have no document, first {!r}; they count 0")
    for who, side in (("people", "human"), ("the judge", "judge")):
        rankings = [(s.name, getattr(s, side)) for s in systems]
        yield from _lacking(
            [(name, ranking, ranking.unjudged(cutoff)) for name, ranking in rankings],
            f"retrieved documents through rank {cutoff} have no label by {who}, first for query "
            "{!r}; they count as not relevant",
        )


def _lacking(
    missing: Sequence[tuple[str, JudgedRanking, npt.NDArray[Any]]], words: str
) -> Iterator[str]:
    """Say it once of all systems, with the numbers of the one that lacks most."""
    runs = sum(counts.any() for *_, counts in missing)
    name, ranking, counts = max(missing, key=lambda one: int(one[2].sum()))
    where = name if runs == 1 else f"{runs} of {len(missing)} runs, most of all {name}"
    if runs:
        query = ranking.labels.query_ids[int(np.argmax(counts > 0))]
        yield f"{where}: {counts.sum()} {words.format(query)}"


# Sources within a system, compared on judged rankings.


def relative_deltas(
    systems: Sequence[JudgedSystem],
    measures: Sequence[str],
    tags: TagTable,
    *,
    baseline: str,
    config: JudgedConfig,
    warnings: list[str],
) -> Iterator[JudgedComparison]:
    """Relative Δ of each other source against the baseline; adds to ``warnings`` what failed."""
    require_tags("the labels", systems[0].judge.labels.doc_ids, tags)
    if baseline not in tags.sources:
        raise DataError(
            f"no document has the baseline source {baseline!r}; sources are {list(tags.sources)}"
        )
    others = [source for source in tags.sources if source != baseline]
    for system in systems:
        codes = [source_of_rows(side.labels, tags) for side in (system.human, system.judge)]
        untagged = np.count_nonzero(codes[1] < 0)
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
                        *_columns(sides),
                        target=config.target,
                        confidence_level=config.confidence_level,
                    )
                except InsufficientDataError as error:
                    warnings.append(f"Relative Δ of {measure} ({system.name}, {other}): {error}")
                    continue
                yield JudgedComparison(
                    kind="relative_delta",
                    measure=measure,
                    system=system.name,
                    first=baseline,
                    second=other,
                    interval=interval,
                )


def source_of_rows(labels: LabelDistributions, tags: TagTable) -> IntArray:
    """Return the source code of each labelled pair, -1 where it is unknown."""
    return source_codes_for(labels.doc_ids, tags).take(labels.doc_codes)


# How the judge grades documents beside how people do.


def grade_audits(
    truth: LabelDistributions,
    judge: LabelDistributions,
    tags: TagTable | None,
    config: JudgedConfig,
) -> dict[str, JudgeAudit]:
    """Compare grades pair by pair, by source where tags are given."""
    rows = rows_of(truth, judge)
    shared = np.flatnonzero(rows >= 0)
    grades = np.arange(judge.n_grades)
    groups = None
    if tags is not None:
        names = (*tags.sources, "untagged")
        groups = tuple(names[k] for k in source_of_rows(truth, tags)[shared])
    pairs = JudgedItems(
        ids=tuple(map(str, shared)),
        human=truth.probs[shared] @ grades,
        judge=judge.probs[rows[shared]] @ grades,
        groups=groups,
        clusters=tuple(map(str, truth.query_codes[shared])),
    )
    found = if_enough(audit_judge, pairs, confidence_level=config.confidence_level)
    return {} if found is None else {"grades": found}


# Intervals for items a judge scored and people labelled in part, such as answers.


def judge_items_with_intervals(
    items: JudgedItems,
    *,
    measure: str = "score",
    config: JudgedConfig,
    name: str = "items",
    bounds: tuple[float, float] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> JudgedReport:
    """Put intervals on the mean human value of judged items, for each group and between groups.

    Each group (system, source) is corrected by its own human labels. An item to which the judge
    gave no value counts with the mean judge value: that keeps the interval valid whatever made the
    judge fail, as the labelled items are drawn from all items.

    Parameters
    ----------
    items : JudgedItems
        With ``groups``, each has its mean, and groups are compared in pairs: paired by cluster
        where a cluster holds one item of each group, unpaired otherwise.
    bounds : tuple of float, optional
        Range of the human values; labels outside it are refused.

    Raises
    ------
    InsufficientDataError
        With too few labels for any interval.
    DataError
        If no item is labelled, or a label is outside the bounds.
    """
    begin = on_stage or (lambda _: None)
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
    groups = groups_of(items)
    begin(f"intervals for {len(groups)} mean(s)")
    warnings = [*_crc_warning(config), *_warnings(items)]
    means = [
        _one_mean(items if len(groups) == 1 else items.take(rows), measure, system, config, bounds)
        for system, rows in groups.items()
    ]
    begin("comparisons and judge audit")
    both = items.labeled & items.judged
    shared = not both.any() or same_scale(items.human[both], items.judge[both])
    found_between = group_differences(items, groups, means, measure, config, bounds=bounds)
    audited = if_enough(audit_judge, items, confidence_level=config.confidence_level)
    return JudgedReport(
        kind="items",
        name=name,
        config=config,
        n_labeled=items.n_labeled,
        n_unlabeled=items.n_unlabeled,
        n_judge_missing=items.n_judge_missing,
        means=in_order(means, found_between.ranks),
        comparisons=tuple(found_between.differences),
        ranks=tuple(found_between.ranks),
        audits={} if audited is None else {measure: audited},
        warnings=(*warnings, *found_between.warnings),
        evidence=evidence_of(items) if shared else (),
        same_scale=shared,
    )


def groups_of(items: JudgedItems) -> dict[str, npt.NDArray[np.int64]]:
    """Rows of each group, in order of first appearance; one group named "" without groups."""
    if items.groups is None:
        return {"": np.arange(len(items))}
    column = np.asarray(items.groups)
    return {group: np.flatnonzero(column == group) for group in dict.fromkeys(items.groups)}


def _one_mean(
    items: JudgedItems,
    measure: str,
    system: str,
    config: JudgedConfig,
    bounds: tuple[float, float] | None,
) -> JudgedMean:
    clusters = items.clusters
    if clusters is not None:
        names, codes = np.unique(clusters, return_inverse=True)
        # single draws from these very items: what they share is no matter
        single = config.target != "population" and how_drawn(codes, items.labeled) == "items"
        if single or len(names) == len(items):
            clusters = None
    known = items.judge[items.judged]
    judge = np.where(items.judged, items.judge, known.mean() if len(known) else 0.0)
    judges = None
    if items.judges is not None:
        judges = np.stack([*items.judges.values()], axis=1)
    values = JudgedValues(items.human, judge, clusters=clusters, judges=judges)
    try:
        return judged_mean(measure, system, values, config, bounds=bounds)
    except InsufficientDataError as error:
        where = f"group {system!r}: " if system else ""
        raise InsufficientDataError(f"{where}{error}", n=error.n, n_needed=error.n_needed) from None


def evidence_of(items: JudgedItems) -> tuple[Evidence, ...]:
    """Return the labelled items whose judge value lies furthest from people's."""
    apart = items.judge - items.human
    return tuple(
        Evidence(
            item=items.ids[at],
            value=float(apart[at]),
            first=EvidenceText(label="people", value=float(items.human[at])),
            second=EvidenceText(label="judge", value=float(items.judge[at])),
        )
        for at in telling(apart, items.ids).tolist()
    )


def _crc_warning(config: JudgedConfig) -> tuple[str, ...]:
    return (
        (f"CRC {InferCode.CRC_SHORT()}; its width is no saving",) if config.method == "crc" else ()
    )


def _warnings(items: JudgedItems) -> Iterator[str]:
    yield from map(str, items.notes)
    if items.n_judge_missing:
        first = items.ids[int(np.flatnonzero(~items.judged)[0])]
        yield (
            f"the judge gave no value for {items.n_judge_missing} of {len(items)} items, first "
            f"{first!r}; they count with the mean judge value, which costs precision but not "
            "validity"
        )
    yield from (*judge_warnings(items), *check_items(items))


# Intervals for rankings whose documents a judge labelled and people labelled for some queries.


def judge_ranking_with_intervals(
    runs: Sequence[Run],
    human: Qrels,
    judges: Mapping[str, LabelDistributions],
    *,
    measures: Sequence[str] = ("NDCG@10",),
    tags: TagTable | None = None,
    baseline_source: str = "human",
    config: JudgedConfig,
    name: str = "ranking",
    on_stage: Callable[[str], None] | None = None,
) -> JudgedReport:
    """Put intervals on ranking measures when people judged some queries and a judge all.

    Parameters
    ----------
    runs : sequence of Run
        Of different names. With several, systems are compared in pairs on the same queries.
    human : Qrels
        Its queries are the labelled ones; each is judged through the largest cutoff, and what is
        not judged counts as not relevant (it is counted and reported).
    judges : mapping of str to LabelDistributions
        Labels of every query, those of ``human`` among them. Several judges by name are averaged,
        each pair over those that labelled it; means also use what they say beyond it.
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
    begin = on_stage or (lambda _: None)
    judge = LabelDistributions.mean_of([*judges.values()])
    if len(judges) == 1:
        judges = {}
    systems = judged_systems(runs, human, judge, judges.values())
    deepest = max(parse_measure(measure)[1] for measure in measures)
    means: list[JudgedMean] = []
    warnings = [
        *(f"{run.name}: {note}" for run in runs for note in run.notes),
        *_crc_warning(config),
        *unjudged_notes(systems, deepest),
        *(
            f"judge {one!r} labelled {len(labels)} of {len(judge)} pairs; elsewhere the others "
            "count alone"
            for one, labels in judges.items()
            if len(labels) < len(judge)
        ),
    ]
    cells: dict[tuple[str, str], JudgedValues] = {}
    for measure, system in product(measures, systems):
        begin(f"{measure} of {system.name}")
        cells[measure, system.name] = values = system.values(measure, config)
        means.append(
            judged_mean(measure, system.name, values, config, bounds=measure_bounds(measure))
        )
    first = cells[measures[0], systems[0].name]
    warnings += check_random_labels(first.all_f, first.labeled)
    begin("comparisons")
    names = [system.name for system in systems]
    require_baseline(config.baseline, names, "run")
    between = Compared([], [], [])
    for measure in measures if len(names) > 1 else ():
        sides = {name: cells[measure, name] for name in names}
        compare(sides, measure, config, measure_bounds(measure), between)
    warnings += between.warnings
    if tags is not None:
        between.differences.extend(
            relative_deltas(
                systems, measures, tags, baseline=baseline_source, config=config, warnings=warnings
            )
        )
    begin("intervals of single queries")
    per_query: tuple[QueryIntervals, ...] = ()
    if config.per_query:
        per_query = tuple(_per_query(systems, cells, config, warnings))
    begin("judge audit")
    return JudgedReport(
        kind="ranking",
        name=name,
        config=config,
        n_labeled=len(human.query_ids),
        n_unlabeled=len(judge.query_ids) - len(human.query_ids),
        n_judge_missing=0,
        means=in_order(means, between.ranks),
        comparisons=tuple(between.differences),
        ranks=tuple(between.ranks),
        per_query=per_query,
        audits=grade_audits(systems[0].human.labels, judge, tags, config),
        warnings=tuple(warnings),
    )


def _per_query(
    systems: Sequence[JudgedSystem],
    cells: Mapping[tuple[str, str], JudgedValues],
    config: JudgedConfig,
    warnings: list[str],
) -> Iterator[QueryIntervals]:
    """Give every query of the judge an interval by the default conformal rule."""
    judges = {system.name: system.judge for system in systems}
    for (measure, name), values in cells.items():
        if parse_measure(measure)[0] not in LINEAR:
            continue
        judge = judges[name]
        labels = judge.ranked_labels(measure, gain=config.gain, min_grade=config.min_grade)
        try:
            found = per_query_intervals(
                labels.take(np.flatnonzero(values.labeled)),
                values.y,
                labels,
                confidence_level=config.confidence_level,
            )
        except CalibrationError as error:
            warnings.append(f"no intervals of single queries for {measure}: {error}")
            continue
        highest = labels.total(np.full(len(labels.weights), labels.gains[-1])).max(initial=0.0)
        yield QueryIntervals(
            measure=measure,
            system=name,
            query_ids=judge.labels.query_ids,
            estimate=found.estimate,
            lower=found.lower,
            upper=found.upper,
            human=values.human,
            highest=float(highest),
            rule=found.rule,
            confidence_level=config.confidence_level,
            assumptions=tuple(map(str, found.assumptions)),
        )

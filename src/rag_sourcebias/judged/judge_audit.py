"""Audit of a judge against human labels: agreement, bias, calibration, drift."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray, LabelDistributions
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    as_generator,
    check_level,
    if_enough,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.decide import adjust_p_values, t_quantile
from rag_sourcebias.infer.dependence import group_codes
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.infer.samples import check_items, is_constant
from rag_sourcebias.io.files import PathLike, read_fitted, write_fitted
from rag_sourcebias.judged.agreement import (
    agreement_of,
    auc_interval,
    correlation_intervals,
    kendall_tau_b,
)
from rag_sourcebias.judged.data import (
    AnchorSet,
    BiasDifference,
    DriftCheck,
    GradeCalibration,
    GroupBias,
    JudgeAudit,
    LabelCalibration,
)
from rag_sourcebias.judged.judge_bias import BiasColumns, judge_biases, mean_error

# Bias of a judge: mean judge − human, per group, and between groups.


def group_biases(
    human: FloatArray,
    judge: FloatArray,
    groups: Sequence[str],
    clusters: IntArray,
    *,
    span: float,
    confidence_level: float = 0.95,
) -> tuple[GroupBias, ...]:
    """Bias of every group, in the order of their names."""
    codes = np.asarray(groups)
    biases = []
    for name in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == name)
        y, f = human[rows], judge[rows]
        bias = mean_error(f - y, clusters[rows], span=span, confidence_level=confidence_level)
        biases.append(
            GroupBias(
                group=str(name),
                n=len(rows),
                human_mean=float(y.mean()),
                judge_mean=float(f.mean()),
                bias=bias,
            )
        )
    return tuple(biases)


# Whether a judge favours one group more than another.


_ALL_PAIRS = 6  # groups; with more, each is held against the rest


def bias_differences(
    errors: FloatArray,
    groups: Sequence[str],
    clusters: IntArray,
    *,
    confidence_level: float = 0.95,
) -> tuple[BiasDifference, ...]:
    """Differences of bias between groups, with Holm-adjusted p-values; smallest p first.

    Up to six groups are compared pair by pair, more each with the rest. The variance is summed
    within clusters, so that systems that answered the same questions are compared as pairs; for
    independent items it is Welch's test.

    Returns
    -------
    tuple of BiasDifference
        Comparisons with a side of fewer than 2 clusters, or without spread, are left out.
    """
    column = np.asarray(groups)
    names = np.unique(column).tolist()
    pairs = list(combinations(names, 2))
    if len(names) > _ALL_PAIRS:
        pairs = [(name, "rest") for name in names]
    compared = []
    for name, other in pairs:
        one = column == name
        rest = ~one if len(names) > _ALL_PAIRS else column == other
        found = _compare(errors, one, rest, clusters, confidence_level)
        if found is not None:
            compared.append((str(name), str(other), *found))
    adjusted = adjust_p_values([p for *_, p in compared])
    differences = []
    for (name, other, difference, p), p_adjusted in zip(compared, adjusted, strict=True):
        if p_adjusted is not None:
            differences.append(
                BiasDifference(
                    group=name,
                    other=other,
                    difference=difference,
                    p_value=p,
                    p_adjusted=float(p_adjusted),
                )
            )
    return tuple(sorted(differences, key=lambda d: d.p_value))


def _compare(
    errors: FloatArray,
    one: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
    clusters: IntArray,
    level: float,
) -> tuple[Interval, float] | None:
    from scipy.special import stdtr

    sides = []
    for rows in (np.flatnonzero(one), np.flatnonzero(other)):
        found = _cluster_sums(errors, rows, clusters)
        if found is None:
            return None
        sides.append(found)
    (mean, sums, g), (other_mean, other_sums, other_g) = sides
    variance = float(((sums - other_sums) ** 2).sum())
    if variance < 1e-24:
        return None
    v, other_v = float((sums**2).sum()), float((other_sums**2).sum())
    welch = (v + other_v) ** 2 / (v**2 / (g - 1) + other_v**2 / (other_g - 1))
    n_either = len(np.unique(clusters[one | other]))
    degrees = min(welch, n_either - 1.0)
    estimate, error = mean - other_mean, math.sqrt(variance)
    width = t_quantile(0.5 + level / 2, degrees) * error
    interval = Interval(
        estimate=estimate,
        lower=estimate - width,
        upper=estimate + width,
        confidence_level=level,
        method=InferCode.CLUSTERED_DIFFERENCE(),
        n_labeled=n_either,
        assumptions=(InferCode.CLUSTERS_SAMPLED(),),
    )
    return interval, float(2 * stdtr(degrees, -abs(estimate) / error))


def _cluster_sums(
    errors: FloatArray, rows: IntArray, clusters: IntArray
) -> tuple[float, FloatArray, int] | None:
    """Return a mean, what each cluster moves it, and the number of clusters; None for one."""
    size = int(clusters.max()) + 1
    g = len(np.unique(clusters[rows]))
    if g < 2:
        return None
    mean = float(errors[rows].mean())
    influence = (errors[rows] - mean) / len(rows) * math.sqrt(g / (g - 1))
    sums = np.bincount(clusters[rows], weights=influence, minlength=size)
    return mean, sums.astype(np.float64), g


# Binned predictions of grades beside what was observed.


def ranked_score(probs: FloatArray, observed: FloatArray) -> float:
    """Ranked probability score of every row."""
    return float((np.cumsum(probs - observed, axis=1)[:, :-1] ** 2).mean())


_BINS = 10  # of about equal size


def bin_codes(predicted: FloatArray) -> IntArray:
    """Code of the bin of each item; bins are never split between equal predictions."""
    _, code, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    wanted = np.minimum((middle * _BINS / len(predicted)).astype(np.int64), _BINS - 1)
    packed = group_codes(wanted)
    return packed.take(code).astype(np.int64)


def one_grade(
    p: FloatArray,
    o: FloatArray,
    grade: int,
    *,
    simulated: IntArray,
    clusters: IntArray,
    level: float,
) -> GradeCalibration:
    """Calibration of the probability ``p`` of one grade, ``o`` of which was observed."""
    code = bin_codes(p)
    size = np.bincount(code)
    weight = size / len(p)
    predicted = np.bincount(code, weights=p) / size
    seen = np.bincount(code, weights=o) / size
    hits = np.stack([np.bincount(code[row == grade], minlength=len(size)) for row in simulated])
    by_chance = np.abs(hits / len(p) - weight * predicted).sum(axis=1)
    difference = if_enough(clustered_mean, p - o, clusters, confidence_level=level)
    return GradeCalibration(
        grade=grade,
        predicted_share=float(p.mean()),
        observed_share=float(o.mean()),
        difference=difference,
        ece=float(weight @ np.abs(predicted - seen)),
        ece_if_calibrated=float(by_chance.mean()),
        brier=float(((p - o) ** 2).mean()),
    )


# Calibration of label distributions: whether the probabilities a judge gives come true.


_SIMULATIONS = 200
_MOST_DRAWS = 4_000_000


def rows_of(wanted: LabelDistributions, labels: LabelDistributions) -> IntArray:
    """Return the row of ``labels`` holding each pair of ``wanted``, -1 where there is none."""
    row_of = {pair: row for row, pair in enumerate(_pairs(labels))}
    return np.array([row_of.get(pair, -1) for pair in _pairs(wanted)], dtype=np.int64)


def _pairs(labels: LabelDistributions) -> Iterator[tuple[str, str]]:
    codes = zip(labels.query_codes.tolist(), labels.doc_codes.tolist(), strict=True)
    return ((labels.query_ids[query], labels.doc_ids[doc]) for query, doc in codes)


def calibration_of(
    probs: FloatArray,
    observed: FloatArray,
    *,
    clusters: IntArray | None = None,
    gains: Sequence[float] | None = None,
    confidence_level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> LabelCalibration:
    """Measure the calibration of probabilities of grades.

    Parameters
    ----------
    probs, observed : float64 arrays of shape (n, L)
        Rows sum to 1. A human grade is a row with a single 1; shares of several people also do.
    clusters : int64 array of shape (n,) or None
        Codes of what may depend on each other; None: every row is independent.
    gains : sequence of L floats or None
        Gain of each grade; None is 2^r − 1.
    rng : numpy.random.Generator or int
        For ``ece_if_calibrated``.

    Raises
    ------
    DataError
        If the shapes differ.
    InsufficientDataError
        With fewer than 2 rows.
    """
    n, n_grades = probs.shape
    values = np.exp2(np.arange(n_grades)) - 1.0
    if gains is not None:
        values = np.asarray(gains, float)
    if clusters is None:
        clusters = np.arange(n)
    # grades drawn from the judge's own probabilities; shape (simulations, n)
    simulations = max(10, min(_SIMULATIONS, _MOST_DRAWS // n))
    simulated = np.zeros((simulations, n), dtype=np.int64)
    uniform = as_generator(rng).random(simulated.shape)
    for step in np.cumsum(probs, axis=1)[:, :-1].T:
        simulated += uniform >= step
    grades = []
    for r in range(n_grades):
        grade = one_grade(
            probs[:, r], observed[:, r], r,
            simulated=simulated, clusters=clusters, level=confidence_level,
        )  # fmt: skip
        grades.append(grade)
    shares = np.broadcast_to(observed.mean(axis=0), observed.shape)
    predicted, seen = probs @ values, observed @ values
    error = if_enough(clustered_mean, predicted - seen, clusters, confidence_level=confidence_level)
    spread = float(np.var(predicted))
    slope = None
    if spread > 1e-12:
        slope = float(np.cov(predicted, seen, ddof=0)[0, 1]) / spread
    return LabelCalibration(
        n=n,
        grades=tuple(grades),
        brier=float(((probs - observed) ** 2).sum(axis=1).mean()),
        rps=ranked_score(probs, observed),
        rps_of_shares=ranked_score(shares, observed),
        gain_error=error,
        gain_slope=slope,
    )


# What an audit of a judge says in words.


def verdict_notes(
    y: FloatArray,
    f: FloatArray,
    pearson: Interval | None,
    differences: tuple[BiasDifference, ...],
    *,
    useful_from: float,
    level: float,
) -> Iterator[str]:
    """Return the notes a reader needs before trusting the judge."""
    if is_constant(f):
        yield (f"the judge is useless: it gives {f[0]:g} to every labelled item; use labels alone")
    elif is_constant(y):
        yield (
            f"every human label is {y[0]:g}: nothing can be said about how the judge orders items"
        )
    elif pearson is not None and abs(pearson.estimate) <= useful_from:
        yield (
            f"the judge is useless: |r| = {abs(pearson.estimate):.3f} is no more than 1/√(n − 2) = "
            f"{useful_from:.3f}; use labels alone"
        )
    elif pearson is not None and not pearson.excludes(0.0):
        yield (
            f"it is not certain that the judge orders items at all: the interval of r, "
            f"[{pearson.lower:.3f}, {pearson.upper:.3f}], holds 0"
        )
    elif pearson is not None and pearson.estimate < 0:
        yield (
            f"the judge orders items the wrong way round (r = {pearson.estimate:.2f}); check the "
            "direction of its scale"
        )
    if differences and differences[0].p_adjusted < 1 - level:
        first = differences[0]
        yield (
            f"the mean error of the judge differs between groups: {first.group} against "
            f"{first.other} {first.difference.estimate:+.3g} (adjusted p = "
            f"{first.p_adjusted:.2g}); estimate the correction per group"
        )


# Audit of a judge: use, agreement, bias by group and calibration against human labels.


_FEWEST = 10


def audit_judge(
    items: JudgedItems | npt.ArrayLike,
    judge: npt.ArrayLike | None = None,
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | npt.NDArray[np.int64] | None = None,
    bias: BiasColumns | None = None,
    confidence_level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> JudgeAudit:
    """Hold a judge against human labels.

    Parameters
    ----------
    items : JudgedItems or array of shape (n,)
        Items, or human values with NaN where there is no label.
    judge : array of shape (n,) or None
        Judge values (NaN: the judge failed), where ``items`` is an array.
    groups : sequence of n str or None
        What the bias is reported by: source, style, system. None takes those of ``items``.
    clusters : sequence of n or None
        Items of one cluster, such as the answers to one question, may depend on each other. None
        takes those of ``items``, and without any every item is independent.
    bias : BiasColumns or None
        What may sway the judge: lengths, values in the other order, with an instruction, its name.
    confidence_level : float
    resamples : int
        Bootstrap resamples of the correlations and of agreement.
    rng : numpy.random.Generator or int

    Returns
    -------
    JudgeAudit

    Raises
    ------
    DataError
        If columns differ in length.
    InsufficientDataError
        With fewer than 10 items that have both values, or fewer than 4 clusters.

    Examples
    --------
    >>> human = [0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0]
    >>> judge = [0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0]
    >>> audit = audit_judge(human, judge)
    >>> audit.useless, round(audit.agreement.kappa.estimate, 3)
    (False, 0.657)
    """
    check_level(confidence_level)
    if not isinstance(items, JudgedItems):
        human = np.asarray(items, dtype=np.float64)
        values = np.asarray([] if judge is None else judge, dtype=np.float64)
        items = JudgedItems(ids=tuple(map(str, range(len(human)))), human=human, judge=values)
    elif judge is not None:
        raise DataError("judge values are given twice: in the items and as an argument")
    for name, column in (("groups", groups), ("clusters", clusters)):
        if column is not None and len(column) != len(items):
            raise DataError(f"{len(column)} {name} for {len(items)} items")
    if groups is not None:
        items = replace(items, groups=tuple(map(str, groups)))
    if clusters is not None:
        items = replace(items, clusters=tuple(map(str, clusters)))
    both = np.flatnonzero(items.labeled & items.judged)
    units = both
    if items.clusters is not None:
        units = np.asarray(items.clusters)[both]
    codes = group_codes(units)
    n_clusters = int(codes.max(initial=-1)) + 1
    if len(both) < _FEWEST or n_clusters < 4:
        raise InsufficientDataError(
            f"{len(both)} item(s) in {n_clusters} cluster(s) have a human label and a judge "
            f"value; an audit needs at least {_FEWEST} items in at least 4 clusters",
            n=len(both),
            n_needed=_FEWEST,
        )
    found = _audit(
        items.take(both), codes, level=confidence_level, resamples=resamples, rng=as_generator(rng)
    )
    missing = int(np.count_nonzero(items.labeled & ~items.judged))
    notes = [*found.notes, *check_items(items)]
    if missing:
        notes.insert(
            len(found.notes),
            f"{missing} of {len(both) + missing} labelled items have no judge value; they are left "
            "out here, and they are rarely missing at random",
        )
    sways = judge_biases(items, bias or BiasColumns(), confidence_level=confidence_level)
    return replace(found, n_judge_missing=missing, notes=tuple(notes), sways=sways)


def _audit(
    items: JudgedItems,
    clusters: IntArray,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> JudgeAudit:
    """Audit items that all have both values."""
    y, f = items.human, items.judge
    options: dict[str, Any] = {"confidence_level": level, "resamples": resamples, "rng": rng}
    pearson = spearman = kendall = None
    if not (is_constant(f) or is_constant(y)):
        pearson, spearman = correlation_intervals(y, f, clusters, **options)
        kendall = kendall_tau_b(y, f)
    agreement = agreement_of(y, f, clusters, **options)
    span = float(max(y.max(), f.max()) - min(y.min(), f.min()))
    bias = mean_error(f - y, clusters, span=span, confidence_level=level)
    groups: tuple[GroupBias, ...] = ()
    differences: tuple[BiasDifference, ...] = ()
    if items.groups:
        groups = group_biases(y, f, items.groups, clusters, span=span, confidence_level=level)
        differences = bias_differences(f - y, items.groups, clusters, confidence_level=level)
    auc = calibration = None
    if np.all((y == 0) | (y == 1)):
        auc = if_enough(auc_interval, f, y == 1, clusters, confidence_level=level)
        calibration = _calibration(y, f, clusters, level, rng)
    useful_from = 1 / math.sqrt(len(y) - 2)
    notes = verdict_notes(y, f, pearson, differences, useful_from=useful_from, level=level)
    return JudgeAudit(
        n=len(y),
        n_clusters=int(clusters.max()) + 1,
        n_judge_missing=0,
        pearson=pearson,
        spearman=spearman,
        kendall=kendall,
        useful_from=useful_from,
        human_mean=float(y.mean()),
        judge_mean=float(f.mean()),
        bias=bias,
        groups=groups,
        differences=differences,
        agreement=agreement,
        auc=auc,
        calibration=calibration,
        notes=tuple(notes),
    )


def _calibration(
    y: FloatArray, f: FloatArray, clusters: IntArray, level: float, rng: np.random.Generator
) -> LabelCalibration | None:
    """Calibration of a probability of a yes; verdicts (0 and 1 alone) are no probabilities."""
    if np.any((f < 0) | (f > 1)) or len(np.unique(f)) <= 2:
        return None
    probs, observed = np.column_stack((1 - f, f)), np.column_stack((1 - y, y))
    gains = (0.0, 1.0)
    return calibration_of(
        probs, observed, clusters=clusters, gains=gains, confidence_level=level, rng=rng
    )


# Anchors whose human value is known, and drift of a judge against them.


# The fixed anchor items that a judge is asked again.


FEWEST_ANCHORS = 20
_KIND = "set of anchors"
_SCHEMA_VERSION = 1


def build_anchor_set(items: JudgedItems, *, settings: Mapping[str, str] | None = None) -> AnchorSet:
    """Freeze the labelled and judged items with the calibration of the judge on them.

    Parameters
    ----------
    items : JudgedItems
        Items without a human label or a judge value are left out.
    settings : mapping of str to str or None
        What identifies the judge: model, prompt hash, temperature.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 anchors.
    CalibrationError
        If the judge gives all of them the same value.
    """
    rows = np.flatnonzero(items.labeled & items.judged)
    if len(rows) < FEWEST_ANCHORS:
        raise InsufficientDataError(
            f"{len(rows)} labelled and judged item(s) are too few for an anchor set; at least "
            f"{FEWEST_ANCHORS} are needed",
            n=len(rows),
            n_needed=FEWEST_ANCHORS,
        )
    y, f = items.human[rows], items.judge[rows]
    if is_constant(f):
        raise CalibrationError(
            f"the judge gives all {len(f)} anchors the value {f[0]:g}; a constant judge cannot be "
            "calibrated"
        )
    slope = float(np.cov(f, y, ddof=0)[0, 1] / np.var(f))
    return AnchorSet(
        ids=tuple(items.ids[i] for i in rows),
        human=y,
        judge=f,
        slope=slope,
        intercept=float(y.mean() - slope * f.mean()),
        settings=dict(settings or {}),
    )


def write_anchor_set(anchors: AnchorSet, path: PathLike) -> None:
    """Write an anchor set as JSON."""
    write_fitted(anchors, path, kind=_KIND, version=_SCHEMA_VERSION)


def read_anchor_set(path: PathLike) -> AnchorSet:
    """Read what :func:`write_anchor_set` wrote.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not an anchor set.
    UnsupportedVersionError
        If it was written with another schema.
    """
    return read_fitted(AnchorSet, path, kind=_KIND, version=_SCHEMA_VERSION)


# Drift of a judge against a fixed anchor set.
# A judge behind an API changes without notice. Items whose human label is known are judged again
# before every use; where the calibrated judge ĉ(f) no longer has the mean error it had, intervals
# built on the old calibration are refused.


_MOST_MISSING = 0.1


def check_drift(
    anchors: AnchorSet,
    new_values: Mapping[str, float] | FloatArray,
    *,
    confidence_level: float = 0.95,
    margin: float | None = None,
) -> DriftCheck:
    """Compare the judge's values on the anchors with those at calibration.

    Paired: the mean change of the judge value, and of the mean error E[y − ĉ(f)] of the calibrated
    judge ĉ(f) = intercept + slope · f, which was 0 at calibration.

    Parameters
    ----------
    anchors : AnchorSet
    new_values : mapping of id to float, or array in the order of the anchors
        NaN, or an id left out, where the judge failed.
    margin : float or None
        Change of E[y − ĉ(f)], on the human scale, that would still be acceptable. With it the
        judge is stable only if the whole interval lies within ± margin (equivalence); without, if
        the interval holds 0.

    Returns
    -------
    DriftCheck

    Raises
    ------
    DataError
        If ids are unknown, the number of values differs, or a value is infinite.
    InsufficientDataError
        If fewer than 20 anchors have a new value.
    """
    check_level(confidence_level)
    if margin is not None and not margin > 0:
        raise DataError(f"margin {margin!r} must be above 0")
    new = _aligned(anchors, new_values)
    known = np.flatnonzero(~np.isnan(new))
    n, n_missing = len(known), int(np.isnan(new).sum())
    if n < FEWEST_ANCHORS:
        raise InsufficientDataError(
            f"{n} of {len(new)} anchors have a new judge value; at least {FEWEST_ANCHORS} are "
            "needed to tell drift",
            n=n,
            n_needed=FEWEST_ANCHORS,
        )
    y, old, now = anchors.human[known], anchors.judge[known], new[known]
    change, span = now - old, float(max(old.max(), now.max()) - min(old.min(), now.min()))
    shift = _mean(change, span, confidence_level)
    moved = _mean(-anchors.slope * change, span * abs(anchors.slope), confidence_level)
    stable = not moved.excludes(0)
    if margin is not None:
        stable = -margin <= moved.lower and moved.upper <= margin
    if n_missing > _MOST_MISSING * len(new):
        stable = False
    calibrated = anchors.intercept + anchors.slope * now
    return DriftCheck(
        n=n,
        n_missing=n_missing,
        share_changed=float(np.mean(np.abs(change) > 1e-9)),
        shift=shift,
        error_shift=moved,
        error_now=float((y - calibrated).mean()),
        correlation_then=_correlation(y, old),
        correlation_now=_correlation(y, now),
        margin=margin,
        stable=stable,
    )


def require_stable(check: DriftCheck) -> None:
    """Refuse to go on with a calibration the judge has moved away from.

    Raises
    ------
    CalibrationError
        With the numbers, if the check did not find the judge stable.
    """
    if check.stable:
        return
    if check.n_missing > _MOST_MISSING * (check.n + check.n_missing):
        raise CalibrationError(
            f"the judge failed on {check.n_missing} of {check.n + check.n_missing} anchors, more "
            f"than {_MOST_MISSING:.0%}: drift cannot be ruled out; judge them again"
        )
    moved = check.error_shift
    allowed = "0" if check.margin is None else f"the margin ± {check.margin:g}"
    raise CalibrationError(
        f"the judge has drifted: E[y − ĉ(f)] moved by {moved.estimate:.4g} "
        f"[{moved.lower:.4g}, {moved.upper:.4g}] on {check.n} anchors, not within {allowed} (mean "
        f"judge value moved by {check.shift.estimate:.4g}; correlation with people "
        f"{check.correlation_then:.2f} then, {check.correlation_now:.2f} now); no interval is "
        "given on the old calibration: label a new sample and calibrate again"
    )


def _aligned(anchors: AnchorSet, values: Mapping[str, float] | FloatArray) -> FloatArray:
    if isinstance(values, Mapping):
        known = set(anchors.ids)
        unknown = [name for name in values if name not in known]
        if unknown:
            raise DataError(
                f"{len(unknown)} judged id(s) are not anchors, first {unknown[0]!r}; anchor ids "
                f"look like {anchors.ids[0]!r}"
            )
        new = np.array([values.get(name, np.nan) for name in anchors.ids], dtype=np.float64)
    else:
        new = np.asarray(values, dtype=np.float64)
        if new.shape != anchors.judge.shape:
            raise DataError(f"values of shape {new.shape} for {len(anchors.ids)} anchors")
    bad = np.flatnonzero(np.isinf(new))
    if len(bad):
        raise DataError(f"the new judge value of anchor {anchors.ids[bad[0]]!r} is infinite")
    return new


def _mean(values: FloatArray, span: float, level: float) -> Interval:
    units = np.arange(len(values), dtype=np.int64)
    found = mean_error(values, units, span=span, confidence_level=level)
    if found is not None:
        return found
    # where every anchor moved by as much there is no sampling error left in the mean change
    value = float(values[0])
    return Interval(
        estimate=value,
        lower=value,
        upper=value,
        confidence_level=level,
        method=InferCode.ALIKE(),
        n_labeled=len(values),
    )


def _correlation(x: FloatArray, y: FloatArray) -> float:
    return 0.0 if is_constant(x) or is_constant(y) else float(np.corrcoef(x, y)[0, 1])

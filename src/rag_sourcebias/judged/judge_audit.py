"""Audit of a judge against human labels: agreement, bias, calibration, drift."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray, LabelDistributions, Qrels
from rag_sourcebias.core.errors import (
    CalibrationError,
    DataError,
    InsufficientDataError,
    check_level,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    adjust_p_values,
    clustered_difference,
    clustered_mean,
    difference_test,
    group_codes,
    mean_of_alike,
    t_around,
    t_p_value,
    t_quantile,
)
from rag_sourcebias.infer.samples import check_items, is_constant, judge_correlation
from rag_sourcebias.judged.data import (
    MOST_MISSING,
    Agreement,
    BiasDifference,
    DriftCheck,
    GroupBias,
    JudgeAudit,
    JudgeBias,
)

# How a judge goes along with people, and agrees with them: two coefficients of the same moments.


_MOST_GRADES = 25  # of a human scale that is one of grades
_ONE = 1 - 1e-12  # the largest coefficient that Fisher's scale holds


def agreement_intervals(
    x: FloatArray, y: FloatArray, clusters: IntArray, *, confidence_level: float = 0.95
) -> tuple[Interval, Interval]:
    """Pearson's r, and Cohen's kappa with quadratic weights, with intervals.

    With quadratic weights kappa is Lin's coefficient of concordance, 2 s_xy / (s_xx + s_yy +
    (x̄ − ȳ)²), whatever the grades; of two grades it is Cohen's own. Both intervals are
    delete-one-cluster jackknives on Fisher's scale with t(G − 2) quantiles.

    Parameters
    ----------
    x, y : float64 arrays of shape (n,)
        Not constant.
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1; ``numpy.arange(n)`` for independent items.
    """
    gap = x.mean() - y.mean()
    x, y = x - x.mean(), y - y.mean()  # moments about 0 lose digits far from it
    terms = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    sums = np.stack([np.bincount(clusters, weights=term) for term in terms])
    total = sums.sum(axis=1, keepdims=True)
    n, sum_x, sum_y, squares_x, squares_y, products = np.hstack((total, total - sums)) / len(x)
    mean_x, mean_y = sum_x / n, sum_y / n
    variance_x, variance_y = squares_x / n - mean_x**2, squares_y / n - mean_y**2
    covariance = products / n - mean_x * mean_y
    scale = np.sqrt(np.maximum(variance_x * variance_y, 0.0))
    apart = variance_x + variance_y + (mean_x - mean_y + gap) ** 2
    return (
        _on_fisher_scale(covariance, scale, "Pearson's r", level=confidence_level),
        _on_fisher_scale(2 * covariance, apart, "Cohen's kappa, quadratic", level=confidence_level),
    )


def _on_fisher_scale(
    part: FloatArray, whole: FloatArray, statistic: str, *, level: float
) -> Interval:
    """Return the interval of a ratio, which is followed by those without each cluster."""
    values = np.divide(part, whole, out=np.zeros_like(whole), where=whole > 1e-12 * whole[0])
    g = len(values) - 1
    z = np.arctanh(np.clip(values, -_ONE, _ONE))
    error = math.sqrt((g - 1) * z[1:].var())
    width = t_quantile(0.5 + level / 2, g - 2) * error
    estimate = float(np.clip(values[0], -1.0, 1.0))
    lower, upper = np.tanh((z[0] - width, z[0] + width))
    return Interval(
        estimate=estimate,
        lower=min(float(lower), estimate),
        upper=max(float(upper), estimate),
        confidence_level=level,
        method=InferCode.FISHER(statistic=statistic),
        n_labeled=g,
        assumptions=(InferCode.ITEMS_SAMPLED(),),
    )


def agreement_of(
    human: FloatArray, judge: FloatArray, clusters: IntArray, *, confidence_level: float = 0.95
) -> Agreement | None:
    """Measure agreement on the same grades.

    Parameters
    ----------
    human, judge : float64 arrays of shape (n,)
        A judge value that is no grade is rounded to the nearest.
    clusters : int64 array of shape (n,)
        Codes 0 … G − 1.

    Returns
    -------
    Agreement or None
        None where the human labels are not grades (more than 25 different values, or one), or the
        judge answers on another scale (outside the human grades by more than half a step).
    """
    grades = _shared_grades(human, judge)
    if grades is None:
        return None
    rounded = grades[np.searchsorted((grades[1:] + grades[:-1]) / 2, judge)]
    same = (human == rounded).astype(np.float64)
    kappa = None
    if not is_constant(rounded):
        _, kappa = agreement_intervals(human, rounded, clusters, confidence_level=confidence_level)
    return Agreement(
        n_grades=len(grades),
        rounded=bool(np.any(rounded != judge)),
        exact=clustered_mean(same, clusters, confidence_level=confidence_level, bounds=(0.0, 1.0)),
        kappa=kappa,
    )


def _shared_grades(human: FloatArray, judge: FloatArray) -> FloatArray | None:
    """Return the grades of both; None where the judge answers on another scale, or in none."""
    grades = np.unique(human)
    if not 2 <= len(grades) <= _MOST_GRADES or not same_scale(human, judge):
        return None
    known = np.unique(judge)
    step = np.diff(grades).min()
    if len(known) <= _MOST_GRADES and np.all(np.mod(known - grades[0], step) == 0):
        return np.union1d(grades, known)  # a grade only the judge uses is still a grade
    return grades


_NARROW = 0.1  # of the range of people: a judge within so little answers on a scale of its own


def same_scale(human: FloatArray, judge: FloatArray) -> bool:
    """Whether a judge seems to answer on the scale of people, so that means can be compared.

    It does not where it goes beyond people's values by more than one of three grades or more, half
    the step of two, or half the range of values that are no grades; nor where it stays within
    0 to 1 or a tenth of their range though people go to 2 or more.
    """
    values = np.unique(human)
    if len(values) < 2:
        return True
    low, high = float(values[0]), float(values[-1])
    reach = (high - low) / 2
    if 2 < len(values) <= _MOST_GRADES:
        reach = np.diff(values).min()
    if max(low - judge.min(), judge.max() - high) > reach + 1e-9:
        return False
    if high < 2 or is_constant(judge):
        return True
    share = judge.min() >= 0 and judge.max() <= 1
    narrow = np.ptp(judge) < _NARROW * (high - low)
    return not (share or narrow)


# Which items depend on each other.


def unit_codes(items: JudgedItems) -> IntArray:
    """Return the code of the cluster of each item; of itself where items are independent."""
    if items.clusters is None:
        return np.arange(len(items))
    return group_codes(items.clusters)


# Several judges.


_RANGES = 2.5  # times another's largest value from which two judges hardly share a scale


def judge_warnings(items: JudgedItems) -> Iterator[str]:
    """Warn of judges that always say the same, or that answer on different scales."""
    judges = items.judges or {}
    constant = [name for name, judge in judges.items() if is_constant(judge)]
    if constant:
        yield (
            f"{len(constant)} of {len(judges)} judges gave the same value to every item and tell "
            f"nothing, first {constant[0]!r}; left out of the mean"
        )
    reach = {
        float(np.nanmax(np.abs(judge))): f"{name!r} {np.nanmin(judge):g} to {np.nanmax(judge):g}"
        for name, judge in judges.items()
        if name not in constant
    }
    if reach and max(reach) > _RANGES * min(reach):
        yield (
            f"judges answer on different scales ({reach[min(reach)]}, {reach[max(reach)]}); each "
            "is divided by its own spread before they are averaged, and the mean of the judges "
            "alone has no unit"
        )


# What a file may hold beside human and judge values.


@dataclass(frozen=True, kw_only=True, eq=False)
class BiasColumns:
    """What may sway a judge, of every item.

    Parameters
    ----------
    length : float64 array of shape (n,) or None
        Of the text that was judged, in any unit; NaN or 0 where unknown.
    swapped : float64 array of shape (n,) or None
        Judge value of the same item with the two things compared shown in the other order; for the
        same side, so that a judge without a preference for a place gives both values alike.
    judge_name : str or None
        Model of the judge; with groups named after models, their families are compared.
    """

    length: FloatArray | None = None
    swapped: FloatArray | None = None
    judge_name: str | None = None

    def __post_init__(self) -> None:
        if self.judge_name is not None and family_of(self.judge_name) is None:
            known = ", ".join(sorted(set(_FAMILIES.values())))
            raise DataError(
                f"judge name {self.judge_name!r} is of no family known here ({known}); leave it "
                "out, or name the model it is built on"
            )


_FAMILIES = {
    r"gpt|chatgpt|davinci|o[134](?=-|$)": "OpenAI",
    r"claude": "Anthropic",
    r"gemini|gemma|palm|bard|flan": "Google",
    r"llama|vicuna|alpaca": "Llama",
    r"qwen|qwq": "Qwen",
    r"mistral|mixtral|ministral": "Mistral",
    r"deepseek": "DeepSeek",
    r"command": "Cohere",
    r"phi": "Microsoft",
    r"grok": "xAI",
    r"bloom": "BigScience",
    r"opt(?=-|$)": "OPT",
    r"pythia": "EleutherAI",
    r"cerebras": "Cerebras",
    r"falcon": "Falcon",
}
_OTHERS_GPT = r"(?<=cerebras-)gpt|gpt-?(?=neo|j\b|2\b)"  # open models of other makers


def family_of(name: str) -> str | None:
    """Return the family of a model by its name, None where it is not known.

    Examples
    --------
    >>> [family_of(name) for name in ("openai/gpt-4o-mini", "Cerebras-GPT-6.7B", "human")]
    ['OpenAI', 'Cerebras', None]
    """
    text = re.sub(_OTHERS_GPT, "", name.lower())
    found = {
        family
        for pattern, family in _FAMILIES.items()
        if re.search(rf"(?<![a-z])(?:{pattern})", text)
    }
    return found.pop() if len(found) == 1 else None


# What sways a judge at equal human value: slopes within values people gave.


_FEWEST = 10  # items, of which a slope or an audit is made


def _within(values: FloatArray, human: FloatArray) -> tuple[FloatArray, int]:
    """Return what of ``values`` the human value leaves, and the degrees of freedom it takes."""
    grades, code, count = np.unique(human, return_inverse=True, return_counts=True)
    if len(grades) <= _MOST_GRADES:
        return values - (np.bincount(code, weights=values) / count)[code], len(grades)
    away = human - human.mean()
    slope = float(away @ values) / float(away @ away)
    return values - values.mean() - slope * away, 2


def slope_of(
    x: FloatArray, values: FloatArray, human: FloatArray, clusters: IntArray, *, level: float
) -> tuple[Interval, float] | None:
    """Slope of ``values`` on ``x`` among items of equal human value, and its p-value.

    Delete-one-cluster jackknife, t with as many degrees of freedom as clusters that carry the
    spread of ``x`` allow.

    Parameters
    ----------
    x, values, human : float64 arrays of shape (n,)
    clusters : int64 array of shape (n,)
        Codes from 0.

    Returns
    -------
    tuple of Interval and float, or None
        None with fewer than 10 items, 8 of them beyond what equal value takes, or 4 clusters, or
        where nothing varies.
    """
    if len(x) < _FEWEST:
        return None
    clusters = group_codes(clusters)
    g = int(clusters.max()) + 1
    (x, taken), (values, _) = _within(x, human), _within(values, human)
    power, cross = (np.bincount(clusters, weights=x * side) for side in (x, values))
    total = float(power.sum())
    rest = total - power
    free = len(x) - taken - 1
    if g < 4 or free < 8 or total < 1e-12 or rest.min() < 1e-9 * total:
        return None
    slope = float(cross.sum()) / total
    moved = (cross.sum() - cross) / rest - slope
    carried = total**2 / float(power @ power)  # clusters, were they alike
    degrees = max(min(g - 2.0, free, 2 * carried - 2), 1.0)
    # means were not left out
    error = math.sqrt((moved @ moved) * g / (g - 1) * (len(x) - 1) / free)
    if error < 1e-12:
        return None
    interval = t_around(
        slope,
        error,
        degrees,
        level=level,
        method=InferCode.SLOPE(),
        n_labeled=g,
        assumptions=(InferCode.CLUSTERS_SAMPLED(),),
    )
    return interval, t_p_value(slope / error, degrees)


# Mean errors and changes, among which many may be 0.


_FEW = 15


def mean_error(
    errors: FloatArray, clusters: IntArray | None, *, span: float, confidence_level: float = 0.95
) -> Interval | None:
    """Mean of judge − human with a cluster-robust t interval.

    Where fewer than 15 errors, and not even half of them, differ from 0, their variance is too
    uncertain, and gains and losses are bounded one by one instead (:func:`clustered_difference`):
    a judge that agrees on each of 30 items is not known to agree always.

    Parameters
    ----------
    span : float
        Length of the scale: no error is larger.

    Returns
    -------
    Interval or None
        None with fewer than 2 clusters, or where all errors are one value other than 0.
    """
    wrong = np.count_nonzero(errors)
    try:
        if wrong < _FEW and 2 * wrong < len(errors) and span > 0:
            unit = clustered_difference(errors / span, clusters, confidence_level=confidence_level)
            ends = {name: getattr(unit, name) * span for name in ("estimate", "lower", "upper")}
            return replace(unit, **ends)
        return clustered_mean(errors, clusters, confidence_level=confidence_level)
    except InsufficientDataError:
        return None


# Every bias that the columns allow.


def judge_biases(
    items: JudgedItems, columns: BiasColumns, *, confidence_level: float = 0.95
) -> tuple[JudgeBias, ...]:
    """Measure what sways a judge, as far as there are columns for it.

    ``length``: judge − human per doubling of length. ``verbosity``: judge value per doubling of
    length at equal human value. ``self_preference``: judge value of groups of the judge's own
    family above that of other known families, at equal human value. ``first_place``: judge value of
    one thing shown first less shown second; ``flips``: share of verdicts that change with the
    order.

    Parameters
    ----------
    items : JudgedItems
        Their clusters are what may depend on each other.
    columns : BiasColumns
        Of the same items.
    confidence_level : float

    Returns
    -------
    tuple of JudgeBias
        p-values are Holm-adjusted over them; what cannot be measured is left out.

    Raises
    ------
    DataError
        If a column differs in length, or a judge is named and no groups of its own family and of
        another known one are there.
    """
    codes = unit_codes(items)
    found = [
        bias
        for measure in (_of_length, _of_family, _of_order)
        for bias in measure(items, columns, codes, confidence_level)
    ]
    adjusted = adjust_p_values([bias.p_value for bias in found])
    return tuple(replace(bias, p_adjusted=p) for bias, p in zip(found, adjusted, strict=True))


def _of_length(
    items: JudgedItems, columns: BiasColumns, codes: IntArray, level: float
) -> Iterator[JudgeBias]:
    if columns.length is None:
        return
    rows = np.flatnonzero(items.labeled & items.judged & (columns.length > 0))
    y, f, doublings = items.human[rows], items.judge[rows], np.log2(columns.length[rows])
    sides: tuple[tuple[Literal["length", "verbosity"], FloatArray, FloatArray], ...] = (
        ("length", f - y, np.zeros(len(rows))),
        ("verbosity", f, y),
    )
    for kind, values, equal in sides:
        found = slope_of(doublings, values, equal, codes[rows], level=level)
        if found is not None:
            yield JudgeBias(kind=kind, n=len(rows), effect=found[0], p_value=found[1])


def _of_family(
    items: JudgedItems, columns: BiasColumns, codes: IntArray, level: float
) -> Iterator[JudgeBias]:
    if columns.judge_name is None or items.groups is None:
        return
    own = family_of(columns.judge_name)
    families = np.array([family_of(name) or "" for name in items.groups])
    if own not in families or not {*families} - {own, ""}:
        names = sorted({*items.groups})
        raise DataError(
            f"judge name {columns.judge_name!r} ({own}) is held against groups of its own and of "
            f"other known families; the groups are {', '.join(names[:5])}"
            + (", …" if len(names) > 5 else "")
        )
    rows = np.flatnonzero(items.labeled & items.judged & (families != ""))
    same = (families[rows] == own).astype(np.float64)
    found = slope_of(same, items.judge[rows], items.human[rows], codes[rows], level=level)
    if found is not None:
        effect, p_value = found
        yield JudgeBias(
            kind="self_preference", n=len(rows), effect=effect, p_value=p_value, family=str(own)
        )


def _of_order(
    items: JudgedItems, columns: BiasColumns, codes: IntArray, level: float
) -> Iterator[JudgeBias]:
    """The same item judged twice, in either order of a pair."""
    if columns.swapped is None:
        return
    rows = np.flatnonzero(items.judged & ~np.isnan(columns.swapped))
    if not len(rows):
        return
    once, again = items.judge[rows], columns.swapped[rows]
    both = np.concatenate((once, again))
    verdicts = both.min() >= 0 and both.max() <= 1  # not grades of a longer scale
    span = 1.0 if verdicts else float(np.ptp(both))
    changes, clusters = once - again, codes[rows]
    found = mean_error(changes, clusters, span=span, confidence_level=level)
    if found is None:
        return
    if found.method.code is InferCode.WEIGHTED_CLUSTERS:
        p_value = difference_test(changes / span, clusters)
    else:
        degrees = found.n_labeled - 1
        error = found.half_width / t_quantile(0.5 + level / 2, degrees)
        p_value = t_p_value(found.estimate / error, degrees)
    yield JudgeBias(kind="first_place", n=len(rows), effect=found, p_value=p_value)
    if verdicts:
        changed = (np.sign(once - 0.5) != np.sign(again - 0.5)).astype(np.float64)
        share = clustered_mean(changed, clusters, confidence_level=level, bounds=(0.0, 1.0))
        yield JudgeBias(kind="flips", n=len(rows), effect=share)


# Bias of a judge: mean judge − human, per group, and between groups.


def group_biases(
    errors: FloatArray,
    groups: Sequence[str],
    clusters: IntArray,
    *,
    span: float,
    confidence_level: float = 0.95,
) -> Iterator[GroupBias]:
    """Yield the bias of every group, in the order of their names."""
    codes = np.asarray(groups)
    for name in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == name)
        bias = mean_error(
            errors[rows], clusters[rows], span=span, confidence_level=confidence_level
        )
        yield GroupBias(group=name, n=len(rows), bias=bias)


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
            compared.append((name, other, *found))
    adjusted = adjust_p_values([p for *_, p in compared])
    differences = [
        BiasDifference(
            group=name, other=other, difference=gap, p_value=p, p_adjusted=cast("float", p_adjusted)
        )
        for (name, other, gap, p), p_adjusted in zip(compared, adjusted, strict=True)
    ]
    return tuple(sorted(differences, key=lambda d: d.p_value))


def _compare(
    errors: FloatArray,
    one: npt.NDArray[np.bool_],
    other: npt.NDArray[np.bool_],
    clusters: IntArray,
    level: float,
) -> tuple[Interval, float] | None:
    means, moved, free = [], [], []
    for rows in (one, other):
        g = len(np.unique(clusters[rows]))
        if g < 2:
            return None
        means.append(float(errors[rows].mean()))
        away = np.where(rows, errors - means[-1], 0.0) / rows.sum() * math.sqrt(g / (g - 1))
        moved.append(np.bincount(clusters, weights=away))  # what each cluster moves the mean
        free.append(g - 1)
    error = float(np.linalg.norm(moved[0] - moved[1]))
    if error < 1e-12:
        return None
    variances = np.square(moved).sum(axis=1)
    welch = float(variances.sum() ** 2 / (variances**2 / free).sum())
    n_either = len(np.unique(clusters[one | other]))
    degrees = min(welch, n_either - 1.0)
    estimate = means[0] - means[1]
    interval = t_around(
        estimate,
        error,
        degrees,
        level=level,
        method=InferCode.CLUSTERED_DIFFERENCE(),
        n_labeled=n_either,
        assumptions=(InferCode.CLUSTERS_SAMPLED(),),
    )
    return interval, t_p_value(estimate / error, degrees)


# Pairs that two sets of labels share.


def rows_of(wanted: LabelDistributions, labels: LabelDistributions) -> IntArray:
    """Return the row of ``labels`` holding each pair of ``wanted``, -1 where there is none."""
    row_of = {pair: row for row, pair in enumerate(pairs_of(labels))}
    return np.array([row_of.get(pair, -1) for pair in pairs_of(wanted)], dtype=np.int64)


def pairs_of(labels: LabelDistributions | Qrels) -> Iterator[tuple[str, str]]:
    """Return query and document of each row."""
    codes = zip(labels.query_codes.tolist(), labels.doc_codes.tolist(), strict=True)
    return ((labels.query_ids[query], labels.doc_ids[doc]) for query, doc in codes)


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
    elif pearson is None:
        yield (
            f"every human label is {y[0]:g}: nothing can be said about how the judge orders items"
        )
    elif abs(pearson.estimate) <= useful_from:
        yield (
            f"the judge is useless: |r| = {abs(pearson.estimate):.3f} is no more than 1/√(n − 2) = "
            f"{useful_from:.3f}; use labels alone"
        )
    elif not pearson.excludes(0.0):
        yield (
            f"it is not certain that the judge orders items at all: the interval of r, "
            f"[{pearson.lower:.3f}, {pearson.upper:.3f}], holds 0"
        )
    elif pearson.estimate < 0:
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


def audit_judge(
    items: JudgedItems,
    *,
    bias: BiasColumns | None = None,
    confidence_level: float = 0.95,
) -> JudgeAudit:
    """Hold a judge against human labels.

    Parameters
    ----------
    items : JudgedItems
        Their groups (source, style, system) are what the bias is reported by. Items of one
        cluster, such as the answers to one question, may depend on each other.
    bias : BiasColumns or None
        What may sway the judge: lengths, values in the other order, with an instruction, its name.
    confidence_level : float

    Returns
    -------
    JudgeAudit

    Raises
    ------
    InsufficientDataError
        With fewer than 10 items that have both values, or fewer than 4 clusters.

    Examples
    --------
    >>> items = JudgedItems(
    ...     ids=tuple("abcdefghijkl"),
    ...     human=np.array([0.0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0]),
    ...     judge=np.array([0.0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0]),
    ... )
    >>> audit = audit_judge(items)
    >>> audit.useless, round(audit.agreement.kappa.estimate, 3)
    (False, 0.657)
    """
    check_level(confidence_level)
    both = np.flatnonzero(items.labeled & items.judged)
    codes = group_codes(unit_codes(items)[both])
    n_clusters = int(codes.max(initial=-1)) + 1
    if len(both) < _FEWEST or n_clusters < 4:
        raise InsufficientDataError(
            f"{len(both)} item(s) in {n_clusters} cluster(s) have a human label and a judge "
            f"value; an audit needs at least {_FEWEST} items in at least 4 clusters",
            n=len(both),
            n_needed=_FEWEST,
        )
    missing = int(np.count_nonzero(items.labeled & ~items.judged))
    y, f = items.human[both], items.judge[both]
    pearson = slope = mean_bias = None
    if not (is_constant(f) or is_constant(y)):
        pearson, _ = agreement_intervals(y, f, codes, confidence_level=confidence_level)
        slope = pearson.estimate * float(y.std() / f.std())
    span = float(np.ptp(np.concatenate((y, f))))
    shared = same_scale(y, f)
    errors = f - y
    if shared:
        mean_bias = mean_error(errors, codes, span=span, confidence_level=confidence_level)
    elif slope is not None:
        errors = slope * (f - f.mean()) - (y - y.mean())  # brought to the scale of people
    groups: tuple[GroupBias, ...] = ()
    differences: tuple[BiasDifference, ...] = ()
    if items.groups:
        names = [items.groups[i] for i in both.tolist()]
        differences = bias_differences(errors, names, codes, confidence_level=confidence_level)
        if shared:
            groups = tuple(
                group_biases(errors, names, codes, span=span, confidence_level=confidence_level)
            )
    useful_from = 1 / math.sqrt(len(y) - 2)
    notes = [
        *verdict_notes(y, f, pearson, differences, useful_from=useful_from, level=confidence_level)
    ]
    if missing:
        notes.append(
            f"{missing} of {len(both) + missing} labelled items have no judge value; they are left "
            "out here, and they are rarely missing at random",
        )
    notes += check_items(items)
    return JudgeAudit(
        n=len(y),
        n_clusters=n_clusters,
        n_judge_missing=missing,
        pearson=pearson,
        useful_from=useful_from,
        same_scale=shared,
        bias=mean_bias,
        groups=groups,
        differences=differences,
        agreement=agreement_of(y, f, codes, confidence_level=confidence_level),
        slope=slope,
        notes=tuple(notes),
        sways=judge_biases(items, bias or BiasColumns(), confidence_level=confidence_level),
    )


# Drift of a judge on items whose human label is known.
# A judge behind an API changes without notice. Items that people labelled are judged again before
# every use; where the calibrated judge ĉ(f) no longer has the mean error it had, intervals built on
# the old calibration are refused.


_FEWEST_AGAIN = 20


def check_drift(
    before: JudgedItems,
    now: JudgedItems,
    *,
    confidence_level: float = 0.95,
    margin: float | None = None,
) -> DriftCheck:
    """Compare a judge's values on labelled items with those it gave them before.

    Paired: the mean change of the judge value, and of the mean error E[y − ĉ(f)] of the calibrated
    judge ĉ(f) = intercept + slope · f, which was 0 at calibration.

    Parameters
    ----------
    before : JudgedItems
        Those with a label and a judge value are compared.
    now : JudgedItems
        The same items, judged again; their labels are not looked at. NaN, or an id left out, is
        one on which the judge failed.
    margin : float or None
        Change of E[y − ĉ(f)], on the human scale, that would still be acceptable. With it the
        judge is stable only if the whole interval lies within ± margin (equivalence); without, if
        the interval holds 0.

    Raises
    ------
    DataError
        If the margin is not above 0.
    InsufficientDataError
        If fewer than 20 items have both values, or a new one.
    CalibrationError
        If the judge gave all of them the same value.
    """
    check_level(confidence_level)
    if margin is not None and not margin > 0:
        raise DataError(f"margin {margin!r} must be above 0")
    rows = np.flatnonzero(before.labeled & before.judged)
    value_of = dict(zip(now.ids, now.judge.tolist(), strict=True))
    new = np.array([value_of.get(before.ids[i], np.nan) for i in rows])
    known = ~np.isnan(new)
    n = int(known.sum())
    if n < _FEWEST_AGAIN:
        raise InsufficientDataError(
            f"{n} of {len(rows)} labelled and judged items have a new judge value; at "
            f"least {_FEWEST_AGAIN} are needed to tell drift",
            n=n,
            n_needed=_FEWEST_AGAIN,
        )
    human, judge = before.human[rows], before.judge[rows]
    if is_constant(judge):
        raise CalibrationError(
            f"the judge gave all {len(judge)} items the value {judge[0]:g}; a constant judge "
            "cannot be calibrated"
        )
    slope = float(np.polyfit(judge, human, 1)[0])
    y, old, again = human[known], judge[known], new[known]
    change, span = again - old, float(np.ptp((old, again)))
    # where every item moved by as much there is no sampling error left in the mean change
    shift, moved = (
        mean_error(times * change, None, span=abs(times) * span, confidence_level=confidence_level)
        or mean_of_alike(times * change, level=confidence_level)
        for times in (1.0, -slope)
    )
    stable = not moved.excludes(0)
    if margin is not None:
        stable = -margin <= moved.lower and moved.upper <= margin
    n_missing = len(new) - n
    return DriftCheck(
        n=n,
        n_missing=n_missing,
        share_changed=float(np.mean(np.abs(change) > 1e-9)),
        shift=shift,
        error_shift=moved,
        correlation_then=judge_correlation(y, old),
        correlation_now=judge_correlation(y, again),
        margin=margin,
        stable=stable and n_missing <= MOST_MISSING * len(new),
    )

"""What sways a judge beside what people judge: length, order, its own family."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.decide import adjust_p_values, t_quantile
from rag_sourcebias.infer.dependence import group_codes
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_difference, clustered_mean, difference_test
from rag_sourcebias.judged.data import JudgeBias

# What a file may hold beside human and judge values.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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


_FEWEST = 10
_MOST_GRADES = 25  # of the human scale; with more, a line through them stands for equal value


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
    from scipy.special import stdtr

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
    error = math.sqrt(float(moved @ moved) * g / (g - 1) * (len(x) - 1) / free)
    if error < 1e-12:
        return None
    width = t_quantile(0.5 + level / 2, degrees) * error
    interval = Interval(
        estimate=slope,
        lower=slope - width,
        upper=slope + width,
        confidence_level=level,
        method=InferCode.SLOPE(),
        n_labeled=g,
        assumptions=(InferCode.CLUSTERS_SAMPLED(),),
    )
    return interval, float(2 * stdtr(degrees, -abs(slope) / error))


# Mean errors and changes, among which many may be 0.


_FEW = 15


def mean_error(
    errors: FloatArray, clusters: IntArray, *, span: float, confidence_level: float = 0.95
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
    wrong = int(np.count_nonzero(errors))
    try:
        if wrong < _FEW and 2 * wrong < len(errors) and span > 0:
            unit = clustered_difference(errors / span, clusters, confidence_level=confidence_level)
            return replace(
                unit,
                estimate=unit.estimate * span,
                lower=unit.lower * span,
                upper=unit.upper * span,
            )
        return clustered_mean(errors, clusters, confidence_level=confidence_level)
    except InsufficientDataError:
        return None


def paired_shift(
    changes: FloatArray, clusters: IntArray, *, span: float, level: float
) -> tuple[Interval, float] | None:
    """Mean of paired changes (:func:`mean_error`) with its p-value; None where it has no interval.

    Parameters
    ----------
    span : float
        Length of the scale: no change is larger.
    """
    from scipy.special import stdtr

    found = mean_error(changes, clusters, span=span, confidence_level=level)
    if found is None or not span > 0:
        return None
    if found.method.code is InferCode.WEIGHTED_CLUSTERS:
        return found, difference_test(changes / span, clusters)
    degrees = found.n_labeled - 1
    error = found.half_width / t_quantile(0.5 + level / 2, degrees)
    return found, float(2 * stdtr(degrees, -abs(found.estimate) / error))


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
    units = np.arange(len(items)) if items.clusters is None else np.asarray(items.clusters)
    codes = group_codes(units)
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
    names, group = np.unique(np.asarray(items.groups), return_inverse=True)
    families = [family_of(str(name)) for name in names]
    own = family_of(columns.judge_name) or ""
    if own not in families or not {*families} - {own, None}:
        raise DataError(
            f"judge name {columns.judge_name!r} ({own}) is held against groups of its own and of "
            f"other known families; the groups are {', '.join(map(str, names[:5]))}"
            + (", …" if len(names) > 5 else "")
        )
    known = np.array([family is not None for family in families])[group]
    rows = np.flatnonzero(items.labeled & items.judged & known)
    same = np.array([float(family == own) for family in families])[group][rows]
    found = slope_of(same, items.judge[rows], items.human[rows], codes[rows], level=level)
    if found is not None:
        yield JudgeBias(
            kind="self_preference", n=len(rows), effect=found[0], p_value=found[1], family=own
        )


def _of_order(
    items: JudgedItems, columns: BiasColumns, codes: IntArray, level: float
) -> Iterator[JudgeBias]:
    """The same item judged twice, in either order of a pair."""
    if columns.swapped is None:
        return
    rows = np.flatnonzero(items.judged & ~np.isnan(columns.swapped))
    once, again = items.judge[rows], columns.swapped[rows]
    span, verdicts = _scale(once, again)
    found = paired_shift(once - again, codes[rows], span=span, level=level)
    if found is None:
        return
    yield JudgeBias(kind="first_place", n=len(rows), effect=found[0], p_value=found[1])
    if verdicts:
        changed = (np.sign(once - 0.5) != np.sign(again - 0.5)).astype(np.float64)
        share = clustered_mean(changed, codes[rows], confidence_level=level, bounds=(0.0, 1.0))
        yield JudgeBias(kind="flips", n=len(rows), effect=share)


def _scale(first: FloatArray, second: FloatArray) -> tuple[float, bool]:
    """Length of the scale that two columns share, and whether it is that of verdicts, 0 to 1."""
    both = np.concatenate((first, second))
    if not len(both):
        return 0.0, False
    low, high = float(both.min()), float(both.max())
    return (1.0, True) if low >= 0 and high <= 1 else (high - low, False)

"""How many labels are needed, and the blind sheets on which people give them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, InsufficientDataError, UnsupportedVersionError
from rag_sourcebias.core.values import FloatArray, check_level, normal_quantile, t_quantile
from rag_sourcebias.io.files import PathLike, jsonl_text, read_json, read_jsonl, sound, write_atomic
from rag_sourcebias.io.tables import Table, read_sheet_csv, sheet_csv
from rag_sourcebias.stats.crc import RankedLabels
from rag_sourcebias.stats.documents import (
    GUESSED_CORRELATION,
    SHARED_IN_QUERY,
    LabeledDocuments,
    Outlook,
    labels_needed,
    outlook,
)
from rag_sourcebias.stats.means import MIN_LABELED, mean_interval
from rag_sourcebias.stats.regression import choose_form, has_spread, wilson_ends
from rag_sourcebias.stats.samples import JudgedSample, is_constant, judge_correlation
from rag_sourcebias.stats.strata import DRAW_COLUMNS, ItemDraw

# How many items to label, as an answer.


ASSURANCE = 0.8  # share of draws in which the promised half-width is to be reached


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPlan:
    """Labelled items needed for a half-width, with a judge and without.

    Parameters
    ----------
    n_judge, n_alone : int
        Items to label in total, those of the pilot included and never fewer. ``n_alone`` may be
        more than the pool has (population target).
    half_width : float
        Asked for; reached in about 80 % of draws like the pilot's.
    saved_low, saved_high : float
        Share of labels saved at the ends of a 90 % interval for the correlation.
    correlation, correlation_low : float
        Of human and judge values in the pilot (0 if either is constant), and its lower 80 % bound,
        at least 0.
    target : str
    confidence_level : float
    n_pilot : int
    assumptions : tuple of str
    """

    n_judge: int
    n_alone: int
    half_width: float
    saved_low: float
    saved_high: float
    correlation: float
    correlation_low: float
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_judge / self.n_alone

    def __str__(self) -> str:
        return (
            f"{self.n_judge:,} labelled items with the judge, {self.n_alone:,} without, for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}), "
            f"reached in about {100 * ASSURANCE:.0f}% of draws like this: {saving(self.saved)}, "
            f"{100 * self.saved_low:.0f}% to {100 * self.saved_high:.0f}% as far as a pilot of "
            f"{self.n_pilot:,} tells (judge r = {self.correlation:.2f}, at least "
            f"{self.correlation_low:.2f})"
        )


def saving(share: float) -> str:
    """Say what share of labels is saved; honest when it is none or less than none."""
    percent = round(100 * share)
    if percent == 0:
        return "no labels saved"
    if percent < 0:
        return f"{-percent}% more labels than without a judge"
    return f"{percent}% of the labels saved"


def residual_share(
    y: FloatArray, yhat: FloatArray, *, clusters: npt.ArrayLike | None = None
) -> tuple[float, float]:
    """Return 1 − r², and the standard error of its logarithm.

    The error is that of the difference of two log variances, by their influence values, which holds
    for rare labels too, where Fisher's z does not. Half a disagreement is added to two-valued
    labels: a judge that follows people on every label may part from them on others.

    Parameters
    ----------
    y : float64 array of shape (n,)
        Human values that differ.
    yhat : float64 array of shape (n,) or (n, p)
    clusters : array-like of length n, optional
        Items that belong together.
    """
    design = np.column_stack([np.ones(len(y)), yhat])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=1e-10)[0]
    total, left = np.square(y - y.mean()), np.square(residual)
    span = float(np.ptp(y))
    extra = span * span / 2 if np.isin(y, (y.min(), y.max())).all() else 0.0
    both = max(float(left.sum()) + extra, 1e-12 * float(total.sum()))
    influence = total / total.sum() - left / both
    if clusters is not None:
        influence = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=influence)
    error = math.sqrt(float(influence @ influence) + (extra / both) ** 2)
    return min(both / float(total.sum()), 1.0), error


# Half-widths against the number of labels, for items.


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Half-width against the number of labels, through the pilot's own interval.

    Parameters
    ----------
    variance : float
        Of one label: of residuals, or of human values.
    shared : float
        Variance that more labels do not take away: of the judge's part over the pool.
    error : float
        Standard error of log ``variance`` if it were estimated from one degree of freedom.
    rank : int
        Fitted parameters.
    mean : float
    bounds : tuple of float or None
        Range of a score interval; None for t.
    scale : float
        What the pilot's interval is wider than the formula, in squares.
    """

    variance: float
    shared: float
    error: float
    rank: int
    mean: float
    bounds: tuple[float, float] | None
    n_pilot: int
    pool: int
    target: str
    probability: float
    scale: float = 0.0

    def half(self, n: int) -> float:
        """Return the half-width from n labels that about 80 % of draws like the pilot's reach."""
        quantile = t_quantile(self.probability, max(n - self.rank, 1))
        rest = max(1 - n / self.pool, 0.0) if self.target == "pool" else 1.0
        each = self.variance * self.growth(n)
        if self.bounds is not None:  # bounded values have no larger variance
            each = min(each, _MARGIN * (self.bounds[1] - self.bounds[0]) ** 2 / 4)
        each *= rest / (1 - self.rank / n)
        scale = math.sqrt(1 + self.scale * self.n_pilot / n)
        if self.bounds is None:
            return scale * quantile * math.sqrt(each / n + self.shared)
        width = self.bounds[1] - self.bounds[0]
        share = (self.mean - self.bounds[0]) / width
        # as stats.regression.score_form does it
        pseudo = rest * (2 * (1 - share) ** 2 + 2 * share**2)
        smoothed = ((each + n * self.shared) / width**2 + pseudo / n) / (n + 4)
        if smoothed <= 0:
            return 0.0
        pulled = (n * share + 2) / (n + 4)
        lower, upper = wilson_ends(share, pulled * (1 - pulled) / smoothed, quantile)
        reach = (upper - lower) / 2
        if self.target == "pool":
            reach = max(reach, quantile * math.sqrt(smoothed))
        return scale * width * reach

    def growth(self, n: int) -> float:
        """How much larger than the pilot's the variance of n labels may be.

        The labels to come are new, those of the pilot are part of the n: log variances of the two
        differ with variance error² · (n − n₀) / (n · ν).
        """
        degrees = self.n_pilot - self.rank
        spread = self.error**2 * max(n - self.n_pilot, 0) / (n * degrees)
        # the mean of a log-normal variance, where no bound holds it down
        skew = spread / 2 if self.bounds is None else 0.0
        return math.exp(t_quantile(ASSURANCE, degrees) * math.sqrt(spread) + skew)


def _curve(
    human: FloatArray,
    judge: FloatArray,
    pool: int,
    method: Literal["regression", "labels"],
    *,
    target: Literal["population", "pool"],
    confidence_level: float,
) -> Curve:
    n = len(human)
    useful = method == "regression" and not is_constant(judge)
    centred = judge - judge.mean() if useful else np.zeros(n)
    slope = float(centred @ human) / float(centred @ centred) if useful else 0.0
    residual = human - human.mean() - slope * centred
    rank = 1 + useful
    square = np.square(residual)
    # a perfect fit leaves no residual to have a kurtosis
    varied = float(square.sum()) > 1e-12 * float(np.square(human - human.mean()).sum())
    peaked = float(n * np.square(square).sum() / square.sum() ** 2) - 3 if varied else 0.0
    # the unbiased form: with few labels the plain one is too small
    excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * peaked + 6) if varied else 0.0
    others = np.resize(judge, min(pool - n, _POOL)) if pool > n else judge[:0]
    explained = slope * slope * float(centred @ centred) / (n - 1)
    variance = float(square.sum()) / (n - rank)
    if not varied and len(np.unique(human)) == 2:
        # half a disagreement: a judge that never parted from people may yet
        variance = float(np.ptp(human)) ** 2 / 2 / (n + 1)
    curve = Curve(
        variance=variance,
        shared=explained / pool if target == "population" else 0.0,
        error=math.sqrt(max(2 + excess, 0.0)),
        rank=rank,
        mean=float(human.mean()),
        bounds=choose_form(JudgedSample.build(human, judge, others), None).bounds,
        n_pilot=n,
        pool=pool,
        target=target,
        probability=0.5 + confidence_level / 2,
    )
    found = mean_interval(
        human, judge, others, method=method, target=target, confidence_level=confidence_level
    )
    own = replace(curve, pool=n + len(others), shared=curve.shared * pool / (n + len(others)))
    formula = own.half(n)
    return replace(curve, scale=(found.half_width / formula) ** 2 - 1 if formula > 0 else 0.0)


def smallest(half: Callable[[int], float], wanted: float, low: int, high: int) -> int | None:
    """Return the smallest n in [low, high] whose half-width does; None if none does."""
    reach = wanted * (1 + 1e-9)
    upper = low
    while half(upper) > reach:
        if upper >= high:
            return None
        low, upper = upper + 1, min(2 * upper, high)
    while low < upper:
        middle = (low + upper) // 2
        low, upper = (low, middle) if half(middle) <= reach else (middle + 1, upper)
    return upper


def positive(half_width: float) -> float:
    """Return the half-width, refusing what is not a positive number."""
    if not (math.isfinite(half_width) and half_width > 0):
        raise DataError(f"half_width {half_width!r} must be a positive number")
    return float(half_width)


# How many items to label, with a judge and without, from a pilot of labelled items.


MOST = 1 << 40  # more items than anyone will label
_MARGIN = 1.03  # what leverages that differ from draw to draw add to the largest variance
_POOL = 5_000  # judge values that stand for those of a larger pool


def plan_item_labels(
    y: npt.ArrayLike,
    yhat: npt.ArrayLike,
    n_unlabeled: int,
    *,
    half_width: float,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
) -> ItemPlan:
    """How many items to label for a half-width of their mean, with a judge and without.

    The half-widths are those of the intervals of the pilot, with the judge and of labels alone,
    carried on to n labels: the part of the labels falls with their number, the part of the judge's
    values does not. The variance of the labels is taken so large that the half-width is reached in
    about 80 % of draws: its error grows with the kurtosis of what the judge misses. The judge often
    saves no more than 0–10 % of the labels.

    Parameters
    ----------
    y, yhat : float arrays of shape (n,)
        Human and judge values of the pilot, 10 items or more, drawn at random.
    n_unlabeled : int
        Items with a judge value only; labels to come are drawn from them.
    half_width : float
        Wanted, in the unit of y.
    target : str
    confidence_level : float

    Returns
    -------
    ItemPlan

    Raises
    ------
    DataError
        If arrays differ in length or are not finite, or the half-width is not positive.
    InsufficientDataError
        If the pilot is too small or its human values are all alike, or the pool is too small for
        the half-width (with the number of items needed).
    """
    check_level(confidence_level)
    if target not in ("population", "pool"):
        raise DataError(f"target {target!r} is not one of population, pool")
    human, judge = _pilot_values(y, yhat)
    if n_unlabeled < 0:
        raise DataError(f"n_unlabeled {n_unlabeled} is negative")
    wanted = positive(half_width)
    n, pool = len(human), len(human) + int(n_unlabeled)
    with_judge, alone = (
        _curve(human, judge, pool, method, target=target, confidence_level=confidence_level)
        for method in ("regression", "labels")
    )
    without = smallest(alone.half, wanted, n, MOST) or MOST
    found = smallest(with_judge.half, wanted, n, pool)
    if found is None:
        raise InsufficientDataError(
            f"labelling all {pool} items gives ±{with_judge.half(pool):.3g}; "
            f"±{wanted:.3g} needs about {without} items",
            n=pool,
            n_needed=without,
        )
    r = judge_correlation(human, judge) if with_judge.rank > 1 else 0.0
    share, error = residual_share(human, judge)
    total = float(human.var(ddof=1))

    def saved(left: float) -> float:
        shared = total * (1 - left) / pool if target == "population" else 0.0
        curve = replace(with_judge, variance=total * left, shared=shared)
        return 1 - (smallest(curve.half, wanted, n, pool) or without) / without

    wide = math.exp(normal_quantile(0.95) * error)
    return ItemPlan(
        n_judge=found,
        n_alone=without,
        half_width=wanted,
        saved_low=min(saved(min(share * wide, 1.0)), 1 - found / without),
        saved_high=max(saved((1 - r * r) / wide), 1 - found / without),
        correlation=r,
        correlation_low=math.sqrt(
            max(1 - share * math.exp(normal_quantile(ASSURANCE) * error), 0.0)
        ),
        target=target,
        confidence_level=confidence_level,
        n_pilot=n,
        assumptions=(
            f"the pilot of {n} items and the labels to come are random draws from the same items, "
            "which are independent",
        ),
    )


def _pilot_values(y: npt.ArrayLike, yhat: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    human, judge = np.asarray(y, dtype=np.float64), np.asarray(yhat, dtype=np.float64)
    if human.ndim != 1 or human.shape != judge.shape:
        raise DataError(
            f"pilot of {human.shape} human and {judge.shape} judge values; expect pairs"
        )
    bad = np.flatnonzero(~(np.isfinite(human) & np.isfinite(judge)))
    if len(bad):
        raise DataError(
            f"{len(bad)} pilot pair(s) are not finite, first at position {int(bad[0])}: "
            f"({human[bad[0]]}, {judge[bad[0]]}); leave them out"
        )
    if len(human) < MIN_LABELED:
        raise InsufficientDataError(
            f"a pilot of {len(human)} pairs tells too little; {MIN_LABELED} are needed",
            n=len(human),
            n_needed=MIN_LABELED,
        )
    if not has_spread(human):
        raise InsufficientDataError(
            f"all {len(human)} human values of the pilot are {human[0]:g}: their spread cannot be "
            "estimated; label more items",
            n=len(human),
        )
    return human, judge


# How many documents or queries to label, as an answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """How far labels of documents go, beside whole queries and labels without a judge.

    Parameters
    ----------
    n_labels : int
        Documents to label, spread over all queries, those of the pilot included.
    half_width : float
        Expected with them, in the unit of the utility.
    half_width_queries, half_width_alone : float or None
        Expected if as many labels went to whole queries, with the judge on the other queries and
        without a judge; None if they do not make two queries.
    labels_queries : int or None
        Labels of whole queries, with the judge, for the same half-width; None if the pool has not
        as many.
    labels_alone : int
        Labels of whole queries, without a judge, for the same half-width; may be more than the
        pool has.
    n_queries : int
        Queries of the pool.
    target : str
    confidence_level : float
    n_pilot : int
        Human labels the plan rests on; with 0 every number is a guess.
    assumptions : tuple of str
    """

    n_labels: int
    half_width: float
    half_width_queries: float | None
    half_width_alone: float | None
    labels_queries: int | None
    labels_alone: int
    n_queries: int
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_labels / self.labels_alone

    def __str__(self) -> str:
        whole = "-" if self.labels_queries is None else f"{self.labels_queries:,}"
        basis = (
            f"from a pilot of {self.n_pilot:,} labels"
            if self.n_pilot
            else "a guess from the judge's own spread, no human label yet"
        )
        return (
            f"{self.n_labels:,} documents over {self.n_queries:,} queries for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}); "
            f"whole queries need {whole} labels with the judge, {self.labels_alone:,} without: "
            f"{saving(self.saved)} ({basis})"
        )


# How many human labels: for a ranking metric, and for judged answers or items.


def plan_labels(
    labels: RankedLabels,
    *,
    half_width: float | None = None,
    n_labels: int | None = None,
    target: Literal["population", "pool"] = "population",
    confidence_level: float = 0.95,
    pilot: LabeledDocuments | None = None,
) -> LabelPlan:
    """How many documents to label for a half-width, or the half-width of so many labels.

    Parameters
    ----------
    labels : RankedLabels
        The judged pool.
    half_width : float or None
        Wanted, in the unit of the utility. Either this or ``n_labels``.
    n_labels : int or None
        Affordable, those of the pilot included.
    target : str
        ``"population"`` or ``"pool"``.
    confidence_level : float
    pilot : LabeledDocuments or None
        Documents with human labels, 10 or more. Without, the numbers are a guess: human gains
        that spread like the judge's and correlate with them at .5.

    Returns
    -------
    LabelPlan

    Raises
    ------
    DataError
        If not exactly one of ``half_width`` and ``n_labels`` is given, or it is not positive, or
        there are not as many documents.
    InsufficientDataError
        If all labels of the pool would not do (with the number of queries needed), if the pilot
        or ``n_labels`` is too small.
    """
    check_level(confidence_level)
    if target not in ("population", "pool"):
        raise DataError(f"target {target!r} is not one of population, pool")
    if (half_width is None) == (n_labels is None):
        raise DataError("give either half_width or n_labels")
    if target == "population" and labels.n_queries < 2:
        raise InsufficientDataError(
            "one query says nothing about other queries; use target='pool' or more queries",
            n=labels.n_queries,
            n_needed=2,
        )
    view = outlook(labels, pilot=pilot, target=target, confidence_level=confidence_level)
    n_pilot = 0 if pilot is None else int(np.isinf(view.size).sum())
    if half_width is not None:
        n_labels = _labels_for(view, positive(half_width), n_pilot)
    elif n_labels is not None:
        _check_labels(view, n_labels, n_pilot)
    return _plan(view, int(n_labels or 0), n_pilot)


def _plan(view: Outlook, n_labels: int, n_pilot: int) -> LabelPlan:
    half = view.by_documents(n_labels)
    whole = int(n_labels / view.per_query + 1e-9)
    in_queries = smallest(view.by_queries, half, 2, view.n_queries)
    alone = smallest(view.alone, half, 2, MOST) or MOST
    return LabelPlan(
        n_labels=n_labels,
        half_width=half,
        half_width_queries=view.by_queries(whole) if whole >= 2 else None,
        half_width_alone=view.alone(whole) if whole >= 2 else None,
        labels_queries=None if in_queries is None else round(in_queries * view.per_query),
        labels_alone=round(alone * view.per_query),
        n_queries=view.n_queries,
        target=view.target,
        confidence_level=view.confidence_level,
        n_pilot=n_pilot,
        assumptions=_assumptions(n_pilot),
    )


def _labels_for(view: Outlook, half_width: float, n_pilot: int) -> int:
    available = int((view.size > 0).sum())
    fewest = labels_needed(n_pilot, available)
    found = smallest(view.by_documents, half_width, fewest, available)
    if found is None:
        least = view.by_documents(available)
        needed = math.ceil(view.n_queries * (least / half_width) ** 2)
        raise InsufficientDataError(
            f"with every document labelled {view.n_queries} queries give ±{least:.3g}; "
            f"±{half_width:.3g} needs about {needed} queries",
            n=view.n_queries,
            n_needed=needed,
        )
    return found


def _check_labels(view: Outlook, n_labels: int, n_pilot: int) -> None:
    available = int((view.size > 0).sum())
    if n_labels > available:
        raise DataError(
            f"{n_labels} labels, but only {available} documents have a rank with weight"
        )
    needed = labels_needed(n_pilot, available)
    if n_labels < needed:
        raise InsufficientDataError(
            f"{n_labels} labelled documents (with {n_pilot} of a pilot) are too few for an "
            f"interval; {needed} are needed",
            n=n_labels,
            n_needed=needed,
        )


def _assumptions(n_pilot: int) -> tuple[str, ...]:
    if n_pilot:
        return ("the documents of the pilot are typical of the pool",)
    return (
        "no human label yet: human gains are taken to spread like the judge's and to correlate "
        f"with them at {GUESSED_CORRELATION:g}",
        f"residuals of documents of one query are taken to correlate at {SHARED_IN_QUERY:g}",
    )


# Sheets on which people grade documents, blind, and what must be true of them when they return.
# The sheet shows an annotator nothing of judge, rank or source. What the estimate needs (which
# rows, with which chances) stays in a manifest beside it, which is kept from annotators.


_FORMAT = "rag-sourcebias labelling sheet"
_VERSION = 1
_CONTENT = ("query_id", "query", "doc_id", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """One document to grade for one query."""

    query_id: str
    query: str
    doc_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilledSheet:
    """Grades that came back, in the order in which the rows were handed over.

    Parameters
    ----------
    grades : int64 array of shape (n,)
        Each in 0 … ``n_grades`` − 1.
    n_grades : int
    design : dict
        What was given to :func:`write_label_sheet`.
    """

    grades: npt.NDArray[np.int64]
    n_grades: int
    design: dict[str, Any]


def manifest_path(sheet: PathLike) -> Path:
    """Where the manifest of a sheet lies: ``labels.csv`` -> ``labels.csv.manifest.json``."""
    path = Path(sheet)
    return path.with_name(path.name + ".manifest.json")


def write_label_sheet(
    path: PathLike,
    rows: Sequence[SheetRow],
    *,
    n_grades: int,
    design: Mapping[str, Any],
    rng: np.random.Generator | int,
    show_doc_ids: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write a blind labelling sheet in random order, and its manifest beside it.

    Parameters
    ----------
    path : path
        ``.csv`` (with a byte-order mark, as spreadsheets want) or ``.jsonl``. Columns: ``row_id``,
        ``query_id``, ``query``, ``doc_id``, ``text`` and an empty ``grade``. In CSV a cell that a
        spreadsheet would take for a formula gets a leading apostrophe.
    rows : sequence of SheetRow
        Each pair of query and document once, in the order of the sample's rows.
    n_grades : int
        Grades are 0 … ``n_grades`` − 1.
    design : mapping
        Ready for JSON; ``DocumentSample.to_dict()``. It comes back with the grades.
    rng : Generator or int
        For the order of the rows.
    show_doc_ids : bool
        False leaves ``doc_id`` out, for ids that tell the source.
    overwrite : bool
        Whether an existing sheet, and the grades on it, may be replaced.

    Returns
    -------
    Path
        Of the manifest. Keep it from annotators: it holds the design.

    Raises
    ------
    DataError
        If the ending is another one, there are no rows, a pair occurs twice, or a text is too
        long for a spreadsheet cell, or the sheet exists.
    """
    ending = _new_sheet(path, overwrite=overwrite)
    if not rows or n_grades < 2:
        raise DataError(
            f"{path}: a sheet needs rows and two grades, not {len(rows)} and {n_grades}"
        )
    pair, most = Counter((row.query_id, row.doc_id) for row in rows).most_common(1)[0]
    if most > 1:
        raise DataError(f"query {pair[0]!r}, document {pair[1]!r} stands on the sheet twice")
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    order = generator.permutation(len(rows)).tolist()
    shown = [c for c in _CONTENT if show_doc_ids or c != "doc_id"]
    digits = len(str(len(rows)))
    ids = [f"r{place:0{digits}d}" for place in range(1, len(rows) + 1)]
    records = [
        {"row_id": row_id, **{c: getattr(rows[i], c) for c in shown}, "grade": ""}
        for row_id, i in zip(ids, order, strict=True)
    ]
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "n_grades": int(n_grades),
        "columns": shown,
        "rows": [
            {
                "row_id": row_id,
                "position": i,
                "query_id": rows[i].query_id,
                "doc_id": rows[i].doc_id,
                "query": _digest(rows[i].query),
                "text": _digest(rows[i].text),
            }
            for row_id, i in zip(ids, order, strict=True)
        ],
        "design": dict(design),
    }
    # complete before anything is written, so that a refusal leaves nothing behind
    content = "".join(sheet_csv(records, path) if ending == ".csv" else jsonl_text(records))
    target = manifest_path(path)
    # the manifest first: a sheet without one could not be read back
    write_atomic(target, json.dumps(manifest, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomic(path, content)
    return target


def read_label_sheet(path: PathLike, *, manifest: PathLike | None = None) -> FilledSheet:
    """Read a filled sheet and check it against its manifest.

    Rows may come back in any order, with other columns beside them, with CRLF, a byte-order mark
    and commas, semicolons or tabs between cells.

    Parameters
    ----------
    path : path
    manifest : path or None
        None looks beside the sheet (:func:`manifest_path`).

    Raises
    ------
    DataError
        Naming file, line, row id and value: a row is unknown, occurs twice, was edited or is
        missing, or grades are empty (how many, which first) or outside the scale.
    UnsupportedVersionError
        If a later version wrote the manifest.
    """
    ending = _ending(path)
    plan = _read_manifest(manifest_path(path) if manifest is None else Path(manifest))
    known: dict[str, dict[str, Any]] = {row["row_id"]: row for row in plan["rows"]}
    grades = np.full(len(known), -1, dtype=np.int64)
    line_of: dict[str, int] = {}
    empty: list[str] = []
    records = read_sheet_csv(path) if ending == ".csv" else read_jsonl(path)
    for line, record in records:
        where = f"{path}:{line}"
        row_id = str(record.get("row_id") or "").strip()
        if row_id not in known:
            raise DataError(
                f"{where}: row_id {row_id!r} is not one of this sheet's {len(known)} "
                f"({plan['rows'][0]['row_id']} … {plan['rows'][-1]['row_id']}); restore it, or "
                "use the manifest of this sheet"
            )
        if row_id in line_of:
            raise DataError(
                f"{where}: row {row_id!r} stood in line {line_of[row_id]} already; keep one"
            )
        line_of[row_id] = line
        _check_content(record, known[row_id], plan["columns"], where)
        grade = _grade(record.get("grade"), plan["n_grades"], f"{where}: row {row_id!r}")
        if grade is None:
            empty.append(f"{where}: row {row_id!r} ({_pair(known[row_id])})")
        else:
            grades[known[row_id]["position"]] = grade
    missing = [row for row_id, row in known.items() if row_id not in line_of]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of {len(known)} rows are missing, first "
            f"{missing[0]['row_id']!r} ({_pair(missing[0])}); put them back: documents left out "
            "are rarely random"
        )
    if empty:
        raise DataError(
            f"{len(empty)} of {len(known)} rows have no grade, first {empty[0]}; grade them all: "
            "documents left out are rarely random"
        )
    return FilledSheet(grades=grades, n_grades=plan["n_grades"], design=plan["design"])


def _new_sheet(path: PathLike, *, overwrite: bool) -> str:
    ending = _ending(path)
    if not overwrite and Path(path).exists():
        raise DataError(
            f"{path} exists and may hold grades; choose another name, or overwrite=True"
        )
    return ending


def _ending(path: PathLike) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise DataError(f"{path}: labelling sheets are .csv or .jsonl")
    return ending


def _pair(row: Mapping[str, Any]) -> str:
    return f"query {row['query_id']!r}, document {row['doc_id']!r}"


def _plain(value: object) -> str:
    """Text without what spreadsheets change on their own: white space, leading apostrophes."""
    return " ".join(str(value if value is not None else "").split()).lstrip("'")


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _check_content(
    record: Mapping[str, Any], known: Mapping[str, Any], columns: Sequence[str], where: str
) -> None:
    for column in columns:
        if column not in record:
            raise DataError(
                f"{where}: column {column!r} is missing; send back all columns as they were"
            )
        value = record[column]
        is_id = column.endswith("_id")
        if (_plain(value) == _plain(known[column])) if is_id else _digest(value) == known[column]:
            continue
        told = f"{value!r} was {known[column]!r}" if is_id else f"{str(value)[:60]!r} was changed"
        raise DataError(
            f"{where}: row {known['row_id']!r}: {column} {told}; only the grade may be filled in. "
            "Spreadsheets drop leading zeros: import the columns as text, or use .jsonl"
        )


def _grade(value: object, n_grades: int, where: str) -> int | None:
    text = "" if value is None else str(value).strip()
    if not text:
        return None
    # spreadsheets write 2 as 2.0 or 2,0 in some locales
    match = re.fullmatch(r"'?([0-9]{1,6})(?:[.,]0*)?", text)
    if match is None or isinstance(value, bool) or int(match[1]) >= n_grades:
        raise DataError(
            f"{where}: grade {value!r} is not on the scale; a whole number 0 … {n_grades - 1} is "
            "expected"
        )
    return int(match[1])


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise DataError(
            f"{path} does not exist: the sheet's manifest is needed to read it; it was written "
            "beside the sheet, name it with manifest="
        )
    data = read_json(path, "the manifest of a labelling sheet")
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise DataError(f"{path} is not the manifest of a labelling sheet")
    if data.get("version") != _VERSION:
        raise UnsupportedVersionError(
            f"{path} has version {data.get('version')!r}, this release reads {_VERSION}"
        )
    lacking = [k for k in ("n_grades", "columns", "rows", "design") if not data.get(k)]
    if lacking and lacking != ["design"]:
        raise DataError(f"{path} lacks {', '.join(lacking)}; it was cut or edited")
    with sound(path, "a complete manifest", remedy="it was cut or edited: take another copy"):
        _check_rows(path, data)
    return data


def _check_rows(path: Path, data: Mapping[str, Any]) -> None:
    rows, names = data["rows"], ["row_id", "query_id", "doc_id", *data["columns"]]
    bad = next((row for row in rows if not all(isinstance(row[name], str) for name in names)), None)
    positions = [row["position"] for row in rows]
    if bad is not None or sorted(positions) != list(range(len(rows))):
        raise DataError(f"{path}: a row holds no text or has no place of its own; it was edited")
    kinds = {"n_grades": int, "columns": list, "design": dict}
    wrong = next((k for k, kind in kinds.items() if not isinstance(data.get(k), kind)), None)
    if wrong is not None:
        raise DataError(f"{path}: {wrong} is {data.get(wrong)!r:.80}; it was edited")


# Sheets on which people label items, with the design of the draw in columns of its own.


def write_item_sheet(
    path: PathLike,
    texts: Table,
    draw: ItemDraw,
    *,
    human: npt.ArrayLike,
    rng: np.random.Generator | int,
    overwrite: bool = False,
) -> None:
    """Write the items of a draw in random order, for people to fill in the column ``human``.

    Parameters
    ----------
    path : path
        ``.csv`` (as :func:`write_label_sheet` writes it) or ``.jsonl``. After the columns of
        ``texts``: ``human``, ``stratum`` (a name that tells nothing of the judge's value),
        ``stratum_size`` and ``probability``. :func:`~rag_sourcebias.join_judged` reads it back.
    texts : Table
        What people are shown of every item, ids among it.
    draw : ItemDraw
    human : array-like of shape (m,)
        Labels there are already; NaN is an empty cell.
    rng : Generator or int
        For the order of the rows and the names of the strata.

    Raises
    ------
    DataError
        If the ending is another one, the sheet exists, a column has the name of one of those
        added, or a text is too long for a spreadsheet cell.
    """
    ending = _new_sheet(path, overwrite=overwrite)
    taken = [name for name in texts.columns if name in ("human", *DRAW_COLUMNS)]
    if taken:
        raise DataError(f"{texts.path} has a column {taken[0]!r}, as sheets have; rename it")
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    units, strata = draw.strata.unit[draw.rows], draw.strata
    order = np.lexsort((
        generator.random(len(units)),
        generator.permutation(len(strata.stratum))[units],
    ))  # fmt: skip
    names = generator.permutation(len(draw.drawn)) + 1
    labels = np.asarray(human, dtype=np.float64)
    records = []
    for row in draw.rows[order].tolist():
        code = int(strata.stratum[strata.unit[row]])
        size = int(strata.sizes[code])
        records.append({
            **{name: _cell(column[row]) for name, column in texts.columns.items()},
            "human": "" if math.isnan(labels[row]) else f"{labels[row]:.10g}",
            "stratum": f"s{names[code]}/{draw.n_strata}",
            "stratum_size": str(size),
            "probability": f"{draw.drawn[code] / size:.10g}",
        })  # fmt: skip
    write_atomic(
        path, "".join(sheet_csv(records, path) if ending == ".csv" else jsonl_text(records))
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

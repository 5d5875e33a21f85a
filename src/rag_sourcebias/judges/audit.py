"""Audit of a judge: use, agreement, bias by group and calibration against human labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import as_generator, check_level
from rag_sourcebias.intervals.checks import check_items
from rag_sourcebias.intervals.scale_checks import is_constant
from rag_sourcebias.judges.agreement import agreement_of
from rag_sourcebias.judges.association import correlation_intervals
from rag_sourcebias.judges.auc import auc_interval
from rag_sourcebias.judges.bias import group_biases, mean_error
from rag_sourcebias.judges.bias_contrasts import bias_differences
from rag_sourcebias.judges.calibration import calibration_of
from rag_sourcebias.judges.kendall import kendall_tau_b
from rag_sourcebias.judges.verdicts import verdict_notes
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judge_bias import BiasDifference, GroupBias
from rag_sourcebias.types.judge_calibration import LabelCalibration
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["audit_judge"]

_FEWEST = 10


def audit_judge(
    items: JudgedItems | npt.ArrayLike,
    judge: npt.ArrayLike | None = None,
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | npt.NDArray[np.int64] | None = None,
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
    generator = as_generator(rng)
    if not isinstance(items, JudgedItems):
        human_values = np.asarray(items, dtype=np.float64)
        items = JudgedItems(
            ids=tuple(map(str, range(len(human_values)))),
            human=human_values,
            judge=np.asarray([] if judge is None else judge, dtype=np.float64),
        )
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
    y, f = items.human[both], items.judge[both]
    codes = _codes(items.clusters, both)
    n_clusters = int(codes.max(initial=-1)) + 1
    if len(both) < _FEWEST or n_clusters < 4:
        raise InsufficientDataError(
            f"{len(both)} item(s) in {n_clusters} cluster(s) have a human label and a judge "
            f"value; an audit needs at least {_FEWEST} items in at least 4 clusters",
            n=len(both),
            n_needed=_FEWEST,
        )
    return _audit(
        y,
        f,
        None if items.groups is None else [items.groups[i] for i in both.tolist()],
        codes,
        n_judge_missing=int(np.count_nonzero(items.labeled & ~items.judged)),
        level=confidence_level,
        resamples=resamples,
        rng=generator,
        notes=check_items(items),
    )


def _codes(clusters: Sequence[str] | None, rows: IntArray) -> IntArray:
    if clusters is None:
        return np.arange(len(rows), dtype=np.int64)
    _, codes = np.unique(np.asarray(clusters)[rows], return_inverse=True)
    return codes.astype(np.int64)


def _audit(
    y: FloatArray,
    f: FloatArray,
    groups: Sequence[str] | None,
    clusters: IntArray,
    *,
    n_judge_missing: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    notes: tuple[str, ...],
) -> JudgeAudit:
    span = float(max(y.max(), f.max()) - min(y.min(), f.min()))
    n = len(y)
    pearson = spearman = None
    if not (is_constant(f) or is_constant(y)):
        pearson, spearman = correlation_intervals(
            y, f, clusters, confidence_level=level, resamples=resamples, rng=rng
        )
    binary = bool(np.all((y == 0) | (y == 1)))
    useful_from = 1 / math.sqrt(n - 2)
    biases: tuple[GroupBias, ...] = ()
    differences: tuple[BiasDifference, ...] = ()
    if groups is not None:
        biases = group_biases(y, f, groups, clusters, span=span, confidence_level=level)
        differences = bias_differences(f - y, groups, clusters, confidence_level=level)
    verdicts = verdict_notes(
        y,
        f,
        pearson,
        differences,
        useful_from=useful_from,
        missing=n_judge_missing,
        level=level,
    )
    return JudgeAudit(
        n=n,
        n_clusters=int(clusters.max()) + 1,
        n_judge_missing=n_judge_missing,
        pearson=pearson,
        spearman=spearman,
        kendall=None if pearson is None else kendall_tau_b(y, f),
        useful_from=useful_from,
        human_mean=float(y.mean()),
        judge_mean=float(f.mean()),
        bias=mean_error(f - y, clusters, span=span, confidence_level=level),
        groups=biases,
        differences=differences,
        agreement=agreement_of(
            y, f, clusters, confidence_level=level, resamples=resamples, rng=rng
        ),
        auc=_auc(y, f, clusters, level) if binary else None,
        calibration=_calibration(y, f, clusters, level, rng) if binary else None,
        notes=(*verdicts, *notes),
    )


def _auc(y: FloatArray, f: FloatArray, clusters: IntArray, level: float) -> Interval | None:
    try:
        return auc_interval(f, y == 1, clusters, confidence_level=level)
    except InsufficientDataError:
        return None


def _calibration(
    y: FloatArray, f: FloatArray, clusters: IntArray, level: float, rng: np.random.Generator
) -> LabelCalibration | None:
    """Calibration of a probability of a yes; verdicts (0 and 1 alone) are no probabilities."""
    if np.any((f < 0) | (f > 1)) or len(np.unique(f)) <= 2:
        return None
    return calibration_of(
        np.column_stack((1 - f, f)),
        np.column_stack((1 - y, y)),
        clusters=clusters,
        gains=(0.0, 1.0),
        confidence_level=level,
        rng=rng,
    )

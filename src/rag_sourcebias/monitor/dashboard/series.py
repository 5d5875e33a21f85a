"""Shares over time, with a confidence sequence for each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rag_sourcebias.monitor.dashboard.parameters import ParameterError
from rag_sourcebias.monitor.dashboard.plain import finite_list
from rag_sourcebias.monitor.dashboard.steps import chosen_step
from rag_sourcebias.monitor.log.read_rollups import (
    NotCountedError,
    Rollups,
    read_rollups,
    rollup_extent,
)
from rag_sourcebias.monitor.sequential.beta_mixture import beta_interval
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.monitor import Measure

__all__ = ["SeriesQuery", "read_series"]

_MOST_GROUPS = 20
_OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesQuery:
    """What is asked for; names as in the API."""

    by: Literal["source", "style"] = "source"
    measure: Measure = "exposure"
    step: str = "auto"
    since: float | None = None
    until: float | None = None
    labels: Mapping[str, str] | None = None


def read_series(path: Path, query: SeriesQuery, *, confidence_level: float) -> dict[str, Any]:
    """Return shares of groups over time.

    The share of a step is that of all its rank weights (or first ranks). Its bounds are those of
    a Beta-mixture confidence sequence with one observation for each retrieval kept that returned
    something: right for observations in [0, 1], and wider than needed for those that are not 0 or
    1. Each step stands alone. The 20 groups with the most documents are told apart.

    Raises
    ------
    ParameterError
        If the step is too short for the time, or the labels have no counts.
    DataError
        If the log cannot be read.
    UnsupportedVersionError
        If it has another version than this release writes.
    """
    extent, step = rollup_extent(path), 60
    if extent:
        step = chosen_step(query.step, extent, since=query.since, until=query.until)
    try:
        rollups = read_rollups(
            path, since=query.since, until=query.until, labels=query.labels, by=query.by, step=step
        )
    except NotCountedError as error:
        raise ParameterError(str(error)) from None
    groups, documents, weights = _largest(
        rollups, rollups.first if query.measure == "first" else rollups.exposure
    )
    total = weights.sum(axis=1, keepdims=True)
    share = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
    n = _answered(rollups)[:, None]
    lower, upper = _bounds(n, share, confidence_level)
    return {
        "by": query.by,
        "measure": query.measure,
        "step_seconds": step,
        "starts": rollups.starts.tolist(),
        "groups": list(groups),
        "share": finite_list(share.T),
        "lower": finite_list(lower.T),
        "upper": finite_list(upper.T),
        "retrievals": rollups.retrievals.tolist(),
        "empty": rollups.empty.tolist(),
        "documents": documents.T.tolist(),
        "confidence_level": confidence_level,
    }


def _largest(
    rollups: Rollups, weights: FloatArray
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return groups, documents and weights, the smaller groups together as "other"."""
    groups, documents = rollups.groups, rollups.documents
    if len(groups) <= _MOST_GROUPS:
        return groups, documents, weights
    order = np.argsort(-documents.sum(axis=0), kind="stable").tolist()
    large = {groups[column] for column in order[: _MOST_GROUPS - 1]}
    names = tuple(sorted(large | {_OTHER}))
    column = [names.index(group if group in large else _OTHER) for group in groups]
    merged = np.zeros((2, len(documents), len(names)))
    for table, values in zip(merged, (documents, weights), strict=True):
        np.add.at(table.T, column, values.T)
    return names, merged[0], merged[1]


def _answered(rollups: Rollups) -> FloatArray:
    """Return how many kept retrievals of a step returned something."""
    empty = np.divide(
        rollups.empty,
        rollups.retrievals,
        out=np.zeros_like(rollups.empty),
        where=rollups.retrievals > 0,
    )
    return np.asarray(np.rint(rollups.kept * (1 - empty)), np.float64)


def _bounds(n: FloatArray, share: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    if not share.size:
        return share, share
    counts = np.broadcast_to(n, share.shape)
    known = np.isfinite(share) & (counts > 0)
    total = np.where(known, share, 0.0) * counts
    lower, upper = beta_interval(counts, total, a=1.0, b=1.0, confidence_level=level)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)

"""From stage to stage: what each source had of what a request retrieved, reranked and showed."""

from __future__ import annotations

from typing import Any

import numpy as np

from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.observe.events import STAGES
from rag_sourcebias.observe.log.schema import REPLACES, EventColumns


def stages_of(part: EventColumns, *, by: str, level: float) -> list[dict[str, Any]]:
    """Return the stages of requests that have several, in order, with shares of exposure.

    Parameters
    ----------
    part : EventColumns
        Every stage of every request.
    by : {"source", "style"}
    level : float
        Of the intervals, which take requests for independent.

    Returns
    -------
    list of dict
        For each stage: requests, those in which it is empty, and for each group the mean share
        of exposure where it is not; the change from the stage before is that of the same requests,
        None at the first.
    """
    assert part.stages is not None  # as every row of a log has them
    assert part.requests is not None
    several = np.isin(part.requests, part.requests[part.stages >= REPLACES])
    steps, names_of = part.stages[several], part.requests[several]
    part = part.take(several)
    tagged = np.array([tag[by == "style"] or "" for tag in part.tags])[part.tag_codes]
    groups, columns = np.unique(tagged, return_inverse=True)
    shares = _shares(part, columns, len(groups))
    z = normal_quantile((1 + level) / 2)
    found: list[dict[str, Any]] = []
    before: tuple[Any, FloatArray] | None = None
    for code, stage in enumerate(STAGES):
        rows = np.flatnonzero(steps % REPLACES == code)
        if not len(rows):
            continue
        # the last of several rerankers counts
        requests, last = np.unique(names_of[rows][::-1], return_index=True)
        here = shares[rows[len(rows) - 1 - last]]
        changes: list[dict[str, float | None]] | None = None
        if before is not None:
            _, mine, theirs = np.intersect1d(requests, before[0], return_indices=True)
            changes = _means(here[mine] - before[1][theirs], z)
        found.append(
            {
                "stage": stage,
                "requests": len(requests),
                "empty": int(np.isnan(here).any(axis=1).sum()),
                "groups": groups.tolist(),
                "shares": _means(here, z),
                "changes": changes,
            }
        )
        before = requests, here
    return found


def _shares(part: EventColumns, columns: IntArray, n_groups: int) -> FloatArray:
    """Return the share of exposure of each group in each row; NaN where there is no document."""
    weights = np.zeros((len(part), n_groups))
    np.add.at(weights, (part.rows, columns), 1 / np.log2(part.ranks + 1))
    with np.errstate(invalid="ignore"):
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _means(values: FloatArray, z: float) -> list[dict[str, float | None]]:
    """Return the mean of each column with its interval; of less than two rows there is none."""
    values = values[~np.isnan(values).any(axis=1)]
    if len(values) < 2:
        return [{"mean": None, "lower": None, "upper": None} for _ in values.T]
    means = values.mean(axis=0)
    halves = z * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return [
        {"mean": float(mean), "lower": float(mean - half), "upper": float(mean + half)}
        for mean, half in zip(means, halves, strict=True)
    ]

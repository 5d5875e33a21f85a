"""Groups of judged items compared."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.intervals.comparison import difference_interval, unpaired_difference_interval
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_items import JudgedItems
from rag_sourcebias.types.judged_parts import JudgedComparison, JudgedMean

__all__ = ["group_differences"]


def group_differences(
    items: JudgedItems,
    groups: dict[str, npt.NDArray[np.int64]],
    means: list[JudgedMean],
    measure: str,
    config: JudgedConfig,
) -> tuple[JudgedComparison, ...]:
    """Differences of all pairs of groups, or of each with the first where there are many."""
    by_name = dict(zip(groups, means, strict=True))
    pairs = list(combinations(groups, 2))
    if len(groups) > 6:
        pairs = pairs[: len(groups) - 1]
    found = []
    for first, second in pairs:
        try:
            interval = _paired(items, groups[first], groups[second], config)
        except InsufficientDataError:
            interval = None
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
        strata=None if strata is None else strata[labeled],
        strata_unlabeled=None if strata is None else strata[~labeled],
    )

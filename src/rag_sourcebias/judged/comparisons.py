"""Systems and groups of a judged evaluation compared."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.judged import (
    SystemComparison,
    compare_systems,
    difference_interval,
    labels_for,
    unpaired_difference_interval,
)
from rag_sourcebias.infer.samples import judge_correlation
from rag_sourcebias.judged.crc import RankedLabels
from rag_sourcebias.judged.data import (
    JudgedComparison,
    JudgedConfig,
    JudgedMean,
    JudgedRanks,
)


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


def compared(
    names: Sequence[str],
    sides: Sequence[JudgedValues],
    measure: str,
    config: JudgedConfig,
    bounds: tuple[float, float] | None,
) -> Compared:
    """Compare systems whose values lie in the same order of items.

    Two have one difference; more have differences that hold all at once, and ranks. What has too
    few labels is a warning.
    """
    y, f, pool = (
        np.stack([getattr(side, name) for side in sides], axis=1)
        for name in ("y", "f", "f_unlabeled")
    )
    options: dict[str, Any] = {
        "target": config.target, "confidence_level": config.confidence_level, "bounds": bounds,
    }  # fmt: skip
    if len(names) == 2:
        try:
            interval = difference_interval(y, f, pool, **options)
        except InsufficientDataError as error:
            return _refused(f"{names[0]} and {names[1]}", measure, error)
        return Compared([_difference(measure, (names[0], names[1]), interval)], [], [])
    if config.baseline:
        options["baseline"] = list(names).index(config.baseline)
    try:
        found = compare_systems(y, f, pool, rng=config.seed, **options)
    except InsufficientDataError as error:
        return _refused(f"{len(names)} systems", measure, error)
    differences = []
    for i, (first, second) in enumerate(zip(found.first, found.second, strict=True)):
        gap = y[:, first] - y[:, second], f[:, first] - f[:, second]
        interval = Interval(
            estimate=float(found.difference[i]),
            lower=float(found.lower[i]),
            upper=float(found.upper[i]),
            confidence_level=config.confidence_level,
            method=InferCode.DIFFERENCES(),
            target=config.target,
            n_labeled=found.n_labeled,
            n_unlabeled=found.n_unlabeled,
            assumptions=(InferCode.LABELS_SAMPLED(), InferCode.SAME_ITEMS()),
            correlation=judge_correlation(*gap),
        )
        pair = (names[first], names[second])
        differences.append(_difference(measure, pair, interval, family=len(found.first)))
    if config.baseline:
        return Compared(differences, [], [])
    return Compared(differences, [_ranks(names, measure, sides, found, config)], [])


def _refused(what: str, measure: str, error: InsufficientDataError) -> Compared:
    return Compared([], [], [f"differences of {what} ({measure}): {error}"])


def compared_measures(
    names: Sequence[str],
    measures: Sequence[str],
    cells: Mapping[tuple[str, str], JudgedValues],
    config: JudgedConfig,
    bounds_of: Callable[[str], tuple[float, float] | None],
) -> Compared:
    """Compare systems by each measure; ``cells`` has their values by measure and name."""
    if config.baseline and config.baseline not in names:
        raise DataError(f"no run is called {config.baseline!r}; there are {list(names)}")
    found = Compared([], [], [])
    for measure in measures if len(names) > 1 else ():
        one = compared(
            names, [cells[measure, name] for name in names], measure, config, bounds_of(measure)
        )
        found.differences.extend(one.differences)
        found.ranks.extend(one.ranks)
        found.warnings.extend(one.warnings)
    return found


def _difference(
    measure: str, pair: tuple[str, str], interval: Interval, *, family: int = 1
) -> JudgedComparison:
    first, second = pair
    return JudgedComparison(
        kind="difference",
        measure=measure,
        system="",
        first=first,
        second=second,
        interval=interval,
        family=family,
    )


def _ranks(
    names: Sequence[str],
    measure: str,
    sides: Sequence[JudgedValues],
    found: SystemComparison,
    config: JudgedConfig,
) -> JudgedRanks:
    order = np.argsort(-found.score, kind="stable").tolist()
    tau, lower, upper = found.tau
    return JudgedRanks(
        measure=measure,
        systems=tuple(names[i] for i in order),
        score=tuple(found.score[order].tolist()),
        judge=tuple(float(sides[i].all_f.mean()) for i in order),
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
    if gap == 0:
        return None
    needed = math.ceil(found.n_labeled * (half / gap) ** 2)
    if found.n_labeled < needed <= _IN_SIGHT * found.n_labeled:
        return needed
    return None


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
    if config.baseline and config.baseline not in names:
        known = f"there are {names}" if items.groups else "the items have no group column"
        raise DataError(f"no group is called {config.baseline!r}; {known}")
    if len(names) < 2:
        return Compared([], [], [])
    if config.method == "crc":  # of two intervals that are too short none is made
        return Compared([], [], ["groups are not compared: CRC has no interval of a difference"])
    index = None
    if config.method == "regression":
        index = _shared(items, list(groups.values()))
    if index is not None:
        human = items.human[index]
        labeled = ~np.isnan(human).any(axis=1)
        human[~labeled] = np.nan  # an item labelled for some systems only is no pair
        judge = np.where(items.judged, items.judge, np.nan)[index]
        judge = np.where(np.isnan(judge), np.nanmean(judge, axis=0), judge)
        sides = [JudgedValues(human[:, k], judge[:, k]) for k in range(len(names))]
        return compared(names, sides, measure, config, bounds)
    interval_of = {name: mean.interval for name, mean in zip(groups, means, strict=True)}
    pairs = list(combinations(names, 2))
    if config.baseline:
        pairs = [(name, config.baseline) for name in names if name != config.baseline]
    family = len(pairs)
    why = _why_apart(items, config.method)
    warning = f"{len(names)} groups are compared as independent samples ({measure}): {why}"
    needed = labels_for(family)
    if min(found.n_labeled for found in interval_of.values()) < needed:
        return Compared([], [], [f"{warning}; {family} differences need {needed} labels of each"])
    differences = []
    for pair in pairs:
        first, second = (interval_of[name] for name in pair)
        interval = unpaired_difference_interval(first, second, family=family)
        differences.append(_difference(measure, pair, interval, family=family))
    return Compared(differences, [], [warning])


def _why_apart(items: JudgedItems, method: str) -> str:
    """Say why differences are not of pairs."""
    if items.clusters is None:
        return "no cluster column tells which items they share"
    if method != "regression":
        return f"method {method!r} does not pair items"
    return "pairs need each group once in every cluster"


def _shared(
    items: JudgedItems, groups: Sequence[npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64] | None:
    """Rows of each shared item, one column per group; None unless all groups have the same items.

    On part of the items a difference would be another one.
    """
    if items.clusters is None:
        return None
    rows = [{items.clusters[i]: int(i) for i in group} for group in groups]
    for row, group in zip(rows, groups, strict=True):
        several = len(row) < len(group)  # items of one group in a cluster
        if several or row.keys() != rows[0].keys():
            return None
    return np.array([[row[key] for row in rows] for key in rows[0]])

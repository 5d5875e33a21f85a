"""A labelled sample and the judged pool it came from, checked and coded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.intervals.values import Design, Labels, as_values
from rag_sourcebias.types.arrays import FloatArray, IntArray

__all__ = ["JudgedSample"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedSample:
    """Human values of n labelled items and judge values of all n + N items.

    Parameters
    ----------
    y : float64 array of shape (n, k)
        Human values; k outputs share the judge values (k = 1 for a mean, 2 for a ratio).
    x : float64 array of shape (n, p)
        Judge values of the labelled items.
    x_unlabeled : float64 array of shape (N, p)
    weights : float64 array of shape (n,)
        1, or the covariate-shift weights.
    shifted : bool
        Whether the labelled items come from another distribution than the pool.
    stratum, stratum_unlabeled : int64 arrays of shape (n,) and (N,)
        Codes 0 … S − 1; all 0 without strata.
    cluster, cluster_unlabeled : int64 arrays or None
        Codes over both sets; None when every item is its own cluster.
    """

    y: FloatArray
    x: FloatArray
    x_unlabeled: FloatArray
    weights: FloatArray
    shifted: bool
    stratum: IntArray
    stratum_unlabeled: IntArray
    n_strata: int
    cluster: IntArray | None
    cluster_unlabeled: IntArray | None

    @classmethod
    def build(
        cls,
        y: npt.ArrayLike,
        yhat: npt.ArrayLike,
        yhat_unlabeled: npt.ArrayLike,
        **design: Unpack[Design],
    ) -> JudgedSample:
        """Check and code what the caller gave; see the class for shapes."""
        strata, strata_unlabeled = design.get("strata"), design.get("strata_unlabeled")
        clusters, clusters_unlabeled = design.get("clusters"), design.get("clusters_unlabeled")
        weights = design.get("weights")
        human = as_values("y", y, columns=True)
        judge = as_values("yhat", yhat, columns=True)
        pool = as_values("yhat_unlabeled", yhat_unlabeled, columns=True)
        if len(pool) == 0:
            pool = pool.reshape(0, judge.shape[1])
        if len(human) != len(judge):
            raise DataError(
                f"{len(human)} human values and {len(judge)} judge values of the labelled items; "
                "yhat holds the judge's values of the same items as y, in the same order"
            )
        if judge.shape[1] != pool.shape[1]:
            raise DataError(f"yhat has {judge.shape[1]} columns, yhat_unlabeled {pool.shape[1]}")
        stratum, stratum_pool = _codes("strata", strata, strata_unlabeled, len(human), len(pool))
        n_strata = int(stratum.max(initial=0)) + 1 if strata is not None else 1
        _check_strata(stratum, stratum_pool, strata, strata_unlabeled, n_strata)
        cluster, cluster_pool = _codes(
            "clusters", clusters, clusters_unlabeled, len(human), len(pool)
        )
        return cls(
            y=human,
            x=judge,
            x_unlabeled=pool,
            weights=_weights(weights, len(human)),
            shifted=weights is not None,
            stratum=stratum,
            stratum_unlabeled=stratum_pool,
            n_strata=n_strata,
            cluster=None if clusters is None else cluster,
            cluster_unlabeled=None if clusters is None else cluster_pool,
        )

    @property
    def n_labeled(self) -> int:
        """Number of labelled items, n."""
        return len(self.y)

    @property
    def n_unlabeled(self) -> int:
        """Number of other items, N."""
        return len(self.x_unlabeled)

    @property
    def n_units(self) -> int:
        """Number of independent labelled units: clusters, or items."""
        return self.n_labeled if self.cluster is None else len(np.unique(self.cluster))


def _codes(
    name: str, labeled: Labels | None, unlabeled: Labels | None, n: int, n_pool: int
) -> tuple[IntArray, IntArray]:
    """Code both sides over one vocabulary, in which the labelled side comes first."""
    if labeled is None:
        if unlabeled is not None:
            raise DataError(f"{name} of the unlabelled items without {name} of the labelled ones")
        return np.zeros(n, dtype=np.int64), np.zeros(n_pool, dtype=np.int64)
    if unlabeled is None and n_pool:
        raise DataError(f"{name} of the unlabelled items are missing ({name}_unlabeled)")
    first, second = np.asarray(labeled), np.asarray(unlabeled if n_pool else labeled[:0])
    if len(first) != n or len(second) != n_pool:
        raise DataError(
            f"{len(first)} and {len(second)} {name} for {n} labelled and {n_pool} other items"
        )
    values, codes = np.unique(first, return_inverse=True)
    place = np.searchsorted(values, second)
    place[place == len(values)] = 0
    known = values[place] == second if n_pool else np.zeros(0, dtype=bool)
    _, extra = np.unique(second[~known], return_inverse=True)
    pool = place.astype(np.int64)
    pool[~known] = len(values) + extra
    return codes.astype(np.int64), pool


def _check_strata(
    stratum: IntArray,
    stratum_pool: IntArray,
    labeled: Labels | None,
    unlabeled: Labels | None,
    n_strata: int,
) -> None:
    if labeled is None:
        return
    missing = stratum_pool >= n_strata
    if missing.any() and unlabeled is not None:
        raise InsufficientDataError(
            f"stratum {_first(unlabeled, missing)!r} has no labelled item; label at least "
            "2 in each stratum, or merge strata",
            n=0,
            n_needed=2,
        )
    counts = np.bincount(stratum, minlength=n_strata)
    if counts.min() < 2:
        code = int(counts.argmin())
        raise InsufficientDataError(
            f"stratum {_first(labeled, stratum == code)!r} has {counts[code]} labelled "
            "item(s); label at least 2 in each stratum, or merge strata",
            n=int(counts[code]),
            n_needed=2,
        )


def _first(values: Labels, chosen: npt.NDArray[np.bool_]) -> Any:  # noqa: ANN401 - any label
    return np.asarray(values)[chosen].tolist()[0]


def _weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones(n)
    array = as_values("weights", weights)
    if len(array) != n:
        raise DataError(f"{len(array)} weights for {n} labelled items")
    if np.any(array < 0) or not array.any():
        raise DataError("weights must be at least 0, and not all 0")
    # Only ratios matter; a mean of 1 keeps sums of squares on the scale of the data.
    scaled: FloatArray = array / array.mean()
    return scaled

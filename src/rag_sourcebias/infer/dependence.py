"""What observations share, and how much independent information that leaves them.

Terms that share a query, a document or a cluster may be correlated. The variance counts every
pair of terms that shares any factor once (Cameron, Gelbach & Miller 2011, Journal of Business &
Economic Statistics 29:238): one-way variances added, those of joint factors subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import BoolArray, FloatArray, IntArray, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Code
from rag_sourcebias.infer.decide import normal_quantile, t_quantile
from rag_sourcebias.intake.belong import Ids, require_common

_NOTHING = 1e-18  # a sum of squares that rounding alone makes
#: Fewest clusters of a factor that is treated as random.
MIN_CLUSTERS = 6


def group_codes(values: npt.ArrayLike) -> IntArray:
    """Return the number of each value among the different ones, in sorted order; shape (n,)."""
    return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64, copy=False)


def mid_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, ties averaged."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2).take(code)


def others_below(scores: FloatArray, positive: BoolArray) -> FloatArray:
    """Items of the other kind below each item, ties counting one half; shape (n,)."""
    own = np.empty(len(scores))
    for side in (positive, ~positive):
        own[side] = mid_ranks(scores[side])
    return mid_ranks(scores) - own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependence:
    """Factors that observations share.

    Parameters
    ----------
    query_ids : tuple of str, length nq
    documents : int64 array of shape (len(qrels.doc_ids),)
        Number of each judged document; versions of one document share it.
    rewriters : int64 array of shape (len(qrels.doc_ids),), optional
        Source of each judged document before sources were merged, -1 for those that were not.
    clusters : int64 array of shape (nq,), optional
        Cluster of each query, such as its topic or user session.
    """

    query_ids: tuple[str, ...]
    documents: IntArray
    rewriters: IntArray | None = None
    clusters: IntArray | None = None

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        tags: TagTable,
        clusters: Mapping[str, str] | None,
        *,
        merged_from: TagTable | None = None,
    ) -> Dependence:
        """Gather the factors of judged documents and queries.

        Raises
        ------
        DataError
            If the clusters name queries without judgments or lack some, or hold one query each.
        """
        rows = tags.rows_for(qrels.doc_ids)
        known = rows >= 0
        pair = np.full(len(rows), -1, dtype=np.int64)
        pair[known] = tags.pair_codes[rows[known]]
        rewriters = None
        if merged_from is not None:
            rewriters = np.full(len(rows), -1, dtype=np.int64)
            rewriters[known] = merged_from.source_codes[rows[known]]
            kept = np.array([name in tags.sources for name in merged_from.sources])
            rewriters[(rewriters >= 0) & kept[rewriters]] = -1
        return cls(
            query_ids=qrels.query_ids,
            documents=np.where(pair >= 0, pair, len(tags.pair_ids) + np.arange(len(rows))),
            rewriters=rewriters,
            clusters=None if clusters is None else _codes(qrels.query_ids, clusters),
        )

    def units(self, query_ids: Sequence[str] | None = None) -> IntArray:
        """Return the unit of each query that is independent of others: itself, or its cluster.

        Queries without judgments are units of their own.
        """
        if query_ids is None:
            query_ids = self.query_ids
        if self.clusters is None:
            return np.arange(len(query_ids))
        code = dict(zip(self.query_ids, self.clusters.tolist(), strict=True))
        return np.array(
            [code.get(q, len(self.query_ids) + i) for i, q in enumerate(query_ids)], dtype=np.int64
        )

    @property
    def what(self) -> str:
        """The units in words."""
        return "queries" if self.clusters is None else "clusters of queries"


def _codes(query_ids: tuple[str, ...], clusters: Mapping[str, str]) -> IntArray:
    require_common("query", Ids("the clusters", list(clusters)), Ids("the judgments", query_ids))
    if unlike := sorted(clusters.keys() ^ set(query_ids)):
        raise DataError(
            f"{len(unlike)} queries have a cluster or judgments, not both, such as {unlike[0]!r}; "
            "give each query of the qrels a cluster, and no other"
        )
    names = [clusters[q] for q in query_ids]
    unique, codes = np.unique(names, return_inverse=True)
    if len(unique) == len(names) > 1:
        raise DataError(
            f"each of {len(names)} queries has a cluster of its own, which is the same as none; "
            "leave the clusters out, or give related queries one name"
        )
    return codes.astype(np.int64)


def multiway_variance(terms: FloatArray, factors: Sequence[IntArray]) -> float:
    """Return the variance of ``terms.sum()``, never below that of any factor alone.

    Parameters
    ----------
    terms : float64 array of shape (n,)
        Influence values, summing to about 0.
    factors : sequence of int64 arrays of shape (n,)
        Cluster of each term per factor, numbered from 0; -1 for a term that shares it with none.
        Each one-way part is multiplied by G/(G − 1).
    """
    codes = [_own(factor) for factor in factors]
    parts = [_clustered(terms, code) for code in codes]
    total = sum(parts)
    for size in range(2, len(codes) + 1):
        for chosen in combinations(codes, size):
            total += (-1) ** (size + 1) * _clustered(terms, _joint(chosen))
    return max(total, *parts)


def independent_share(
    terms: FloatArray, units: IntArray, others: Sequence[IntArray], *, confidence_level: float
) -> float:
    """Return how much of its independent information each unit keeps, in (0, 1].

    The variance over the units alone as a share of that over all factors, times the squared ratio
    of t quantiles where another factor has fewer clusters than there are units. Where nothing
    varies, or a factor has one cluster, units are as many as the fewest clusters of a factor.
    """
    alone = _clustered(terms, _own(units))
    shared = [factor for factor in others if _crosses(factor, units)]
    if not shared:
        return 1.0
    fewest = min(_count(factor) for factor in (units, *shared))
    if alone <= _NOTHING or fewest < 2:
        return fewest / _count(units)
    share = min(alone / multiway_variance(terms, [units, *shared]), 1.0)
    p = 0.5 + confidence_level / 2
    if fewest < _count(units):
        share *= (t_quantile(p, _count(units) - 1) / t_quantile(p, fewest - 1)) ** 2
    return round(min(share, 1.0), 12)  # the same for every order of the terms


def design_effect(terms: FloatArray, units: IntArray) -> tuple[float, float]:
    """Return how many terms of a unit move together, and what few units leave of its information.

    Returns
    -------
    effect : float
        The variance between units as a multiple of that of independent terms, from 1, where terms
        of a unit have nothing in common, to their mean number, where they are equal or nothing
        varies.
    kept : float
        Squared ratio of the normal to the t quantile at .975 with units − 1 degrees of freedom;
        1 where every term is a unit of its own.
    """
    alone, g = float(terms @ terms), _count(units)
    if len(terms) <= g or g < 2:
        return 1.0, 1.0
    kept = (normal_quantile(0.975) / t_quantile(0.975, g - 1)) ** 2
    effect = _clustered(terms, units) / alone if alone > _NOTHING else len(terms) / g
    return round(min(max(effect, 1.0), len(terms) / g), 12), kept


def require_clusters(n: int, code: Code, **numbers: Any) -> None:  # noqa: ANN401
    """Refuse a factor with fewer than 6 clusters.

    Parameters
    ----------
    code : Code
        What to say: of ``n``, ``n_needed`` and these numbers.

    Raises
    ------
    InsufficientDataError
        ``n_needed`` is 6.
    """
    if n < MIN_CLUSTERS:
        raise InsufficientDataError(code(n=n, n_needed=MIN_CLUSTERS, **numbers))


def _count(factor: IntArray) -> int:
    return int(np.count_nonzero(np.bincount(factor[factor >= 0])))


def _own(factor: IntArray) -> IntArray:
    """Give each term without a cluster one of its own."""
    code = factor.copy()
    alone = np.flatnonzero(code < 0)
    code[alone] = int(code.max(initial=-1)) + 1 + np.arange(len(alone))
    return code


def _joint(codes: Sequence[IntArray]) -> IntArray:
    key = codes[0]
    for code in codes[1:]:
        key = group_codes(key * (int(code.max(initial=0)) + 1) + code)
    return key


def _crosses(factor: IntArray, units: IntArray) -> bool:
    """Whether a cluster of the factor reaches into more than one unit."""
    inside = factor >= 0
    pairs = np.unique(np.stack((factor[inside], units[inside])), axis=1)
    return bool(np.any(np.diff(pairs[0]) == 0))


def _clustered(terms: FloatArray, code: IntArray) -> float:
    code = group_codes(code)
    sums = np.bincount(code, weights=terms)
    g = len(sums)
    return float(sums @ sums) * g / (g - 1) if g > 1 else 0.0

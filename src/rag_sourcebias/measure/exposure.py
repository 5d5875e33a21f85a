"""Who gets the attention: exposure of each source, without judgments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.measure.relevance import (
    rank_span,
    source_codes_for,
)

# Exposure of each source without judgments: who gets the attention.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Share of attention per source and query.

    Parameters
    ----------
    sources : tuple of str
        Sources of the table, then ``""`` for untagged documents.
    shares : float64 array of shape (len(sources), nq)
        Each column sums to 1; queries without results are left out.
    query_index : int64 array of shape (nq,)
        Index into ``run.query_ids``.
    """

    sources: tuple[str, ...]
    shares: FloatArray
    query_index: npt.NDArray[np.int64]


def attention_weights(browsing: str, depth: int) -> FloatArray:
    """Attention on ranks 1 … depth; shape (depth,).

    Parameters
    ----------
    browsing : str
        ``"top-<k>"`` (equal attention on the first k), ``"dcg"`` (1/log2(rank + 1)), or
        ``"rbp-<p>"`` (p^(rank − 1), a reader who goes on with probability p;
        Moffat & Zobel 2008).
    """
    rank = np.arange(1, depth + 1)
    if browsing == "dcg":
        return 1 / np.log2(rank + 1)
    if match := re.fullmatch(r"top-([1-9]\d*)", browsing):
        return (rank <= int(match[1])).astype(np.float64)
    if (match := re.fullmatch(r"rbp-(0?\.\d+)", browsing)) and 0 < float(match[1]) < 1:
        return np.power(float(match[1]), rank - 1)
    raise DataError(
        f"unknown browsing model {browsing!r}; use 'top-<k>', 'dcg' or 'rbp-<p>' with 0 < p < 1"
    )


def exposure(run: Run, tags: TagTable, *, browsing: str = "dcg") -> Exposure:
    """Share of attention each source receives, over all retrieved documents.

    Documents of a tie block share its attention equally.

    Parameters
    ----------
    run : Run
        Queries without results are left out.
    tags : TagTable
        Sources of the documents; those that are not in it count as untagged.
    browsing : str
        Attention on the ranks, see :func:`attention_weights`.
    """
    return _shares(run, tags, attention_weights(browsing, int(np.diff(run.offsets).max(initial=0))))


def _shares(run: Run, tags: TagTable, weights: FloatArray) -> Exposure:
    reach = np.concatenate(([0.0], np.cumsum(weights)))
    start, stop = rank_span(run, np.arange(len(run)), ties="expected")
    n_groups = len(tags.sources) + 1
    group = source_codes_for(run.doc_ids, tags)[run.doc_codes]
    group[group < 0] = n_groups - 1
    total = np.bincount(
        run.query_codes * n_groups + group,
        weights=(reach[stop] - reach[start]) / (stop - start),
        minlength=len(run.query_ids) * n_groups,
    ).reshape(len(run.query_ids), n_groups)
    answered = np.flatnonzero(np.diff(run.offsets) > 0)
    return Exposure(
        sources=(*tags.sources, ""),
        shares=(total[answered] / total[answered].sum(axis=1, keepdims=True)).T,
        query_index=answered,
    )


def awrf(found: Exposure, target: Mapping[str, float]) -> FloatArray:
    """Attention-weighted rank fairness per query, shape (nq,), in [0, 1]; 1 is proportional.

    1 minus the Jensen–Shannon divergence (base 2) between the exposure shares and the target
    shares (Sapiezynski et al. 2019; Raj & Ekstrand 2022).

    Parameters
    ----------
    target : mapping of str to float
        Wanted share per source, summing to 1; missing sources have 0.
    """
    if strange := sorted(set(target) - set(found.sources)):
        raise DataError(f"target names {strange}; the exposure has {list(found.sources)}")
    goal = np.array([target.get(name, 0.0) for name in found.sources])
    if np.any(goal < 0):
        raise DataError(f"target shares {dict(target)} hold a negative share")
    if not np.isclose(goal.sum(), 1.0):
        raise DataError(f"target shares sum to {goal.sum():.4f}, they must sum to 1")
    middle = (found.shares + goal[:, None]) / 2

    def divergence(p: FloatArray) -> FloatArray:
        ratio = np.divide(p, middle, out=np.ones_like(middle), where=p > 0)
        return np.asarray(np.sum(p * np.log2(ratio), axis=0))

    return np.clip(1 - (divergence(found.shares) + divergence(goal[:, None])) / 2, 0.0, 1.0)

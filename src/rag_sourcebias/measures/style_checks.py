"""Names and missing versions in tables of style scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["Missing", "complete_queries", "query_names", "unique_names"]

Missing = Literal["refuse", "balanced"]


def unique_names(names: Sequence[str], kind: str, *, at_least: int = 1) -> tuple[str, ...]:
    """Return the names as a tuple; raise when one comes twice or there are too few."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{kind} {twice[0]!r} is given twice; each {kind} may come once")
    if len(names) < at_least:
        raise DataError(
            f"there is {len(names)} {kind} ({', '.join(map(repr, names)) or 'none'}); a comparison "
            f"needs at least {at_least}"
        )
    return tuple(names)


def query_names(query_ids: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Return n unique query ids; numbers from 0 where none are given."""
    if query_ids is None:
        return tuple(str(i) for i in range(n))
    if len(query_ids) != n:
        raise DataError(f"{len(query_ids)} query ids but scores of {n} queries; need as many")
    return unique_names(query_ids, "query id")


def complete_queries(
    scores: FloatArray,
    query_ids: Sequence[str],
    query_styles: Sequence[str | None],
    styles: Sequence[str],
    *,
    missing: Missing,
) -> npt.NDArray[np.bool_]:
    """Tell which queries have every version; shape (n,).

    Parameters
    ----------
    scores : float64 array of shape (n, q, d)
        NaN marks a missing version.
    query_styles : sequence of length q
        None where the query has one style only and need not be named.

    Raises
    ------
    DataError
        If a score is infinite, or one is missing and ``missing="refuse"``.
    InsufficientDataError
        If no query is complete.
    """
    if missing not in ("refuse", "balanced"):
        raise DataError(f"missing {missing!r} is not one of 'refuse', 'balanced'")
    if not len(scores):
        raise InsufficientDataError("there is no query to rank versions for", n=0, n_needed=1)

    def place(at: npt.NDArray[np.int64]) -> str:
        query, form, style = at
        of_form = "" if query_styles[form] is None else f" (query style {query_styles[form]!r})"
        return f"query {query_ids[query]!r}{of_form}, style {styles[style]!r}"

    infinite = np.argwhere(np.isinf(scores))
    if len(infinite):
        raise DataError(
            f"{len(infinite)} infinite score(s), first for {place(infinite[0])}; a similarity must "
            "be a finite number"
        )
    absent = np.argwhere(np.isnan(scores))
    keep = np.asarray(~np.isnan(scores).any(axis=(1, 2)), dtype=np.bool_)
    if len(absent) and missing == "refuse":
        raise DataError(
            f"{len(absent)} version(s) without a score (NaN), first for {place(absent[0])}; give a "
            "score for each, or missing='balanced' to use only the "
            f"{np.count_nonzero(keep)} of {len(keep)} queries that have every version"
        )
    if not keep.any():
        lacking = np.isnan(scores).any(axis=1).sum(axis=0)
        worst = int(lacking.argmax())
        raise InsufficientDataError(
            f"none of {len(keep)} queries has every version; style {styles[worst]!r} lacks one for "
            f"{lacking[worst]} of them: leave that style out, or add versions",
            n=0,
            n_needed=1,
        )
    return keep

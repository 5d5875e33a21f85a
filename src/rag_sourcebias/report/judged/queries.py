"""What the intervals of single queries are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.judged_parts import QueryIntervals

__all__ = ["QuerySummary", "holds", "queries_summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySummary:
    """What the intervals of single queries are worth.

    Parameters
    ----------
    n, n_labeled : int
        Queries, and those with a human value.
    held : int
        Human values inside their interval.
    mean_width, share : float
        In the unit of the measure, and of its range.
    """

    n: int
    n_labeled: int
    held: int
    mean_width: float
    share: float


def holds(query: QueryIntervals) -> npt.NDArray[np.bool_]:
    """Return which intervals hold the human value; False where there is none."""
    inside: npt.NDArray[np.bool_] = (query.lower - 1e-9 <= query.human) & (
        query.human <= query.upper + 1e-9
    )
    return inside


def queries_summary(query: QueryIntervals) -> QuerySummary:
    """Summarise the intervals of single queries."""
    width = float((query.upper - query.lower).mean()) if len(query.query_ids) else 0.0
    return QuerySummary(
        n=len(query.query_ids),
        n_labeled=int(np.count_nonzero(~np.isnan(query.human))),
        held=int(np.count_nonzero(holds(query))),
        mean_width=width,
        share=width / query.highest if query.highest > 0 else 0.0,
    )

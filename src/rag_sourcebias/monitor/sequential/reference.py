"""A baseline from a frozen window of the past, with the error of that window.

The window gives an interval that holds the true mean with probability 1 − αᵣ. Evidence against
every mean inside it is an e-process when the interval holds, so watching at level 1 − αₛ gives a
false alarm with probability at most αᵣ + αₛ over all time (union bound). By default αᵣ is a fifth
of the whole: the interval is drawn once, while the stream is looked at for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.inference.quantiles import check_level
from rag_sourcebias.monitor.sequential.betting_interval import BettingInterval
from rag_sourcebias.monitor.sequential.null import NullRange
from rag_sourcebias.monitor.sequential.rows import as_rows
from rag_sourcebias.types.arrays import FloatArray

__all__ = ["WINDOW_PART", "ReferenceWindow", "reference_window", "window_interval"]

WINDOW_PART = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceWindow:
    """What a window of the past says about the means of its groups.

    Parameters
    ----------
    null : NullRange
        Baselines, shape (groups,), for a test of the stream.
    window_level, stream_level : float
        Levels of the interval of the window, for each group, and of the test of the stream.
    mean : ndarray of shape (groups,)
    n : int
    """

    null: NullRange
    window_level: float
    stream_level: float
    mean: FloatArray
    n: int


def reference_window(
    values: npt.ArrayLike,
    *,
    confidence_level: float = 0.95,
    window_part: float = WINDOW_PART,
) -> ReferenceWindow:
    """Turn a window into baselines.

    Parameters
    ----------
    values : array_like of shape (n, groups) or (n,)
        Observations in [0, 1], at least 2; independent of those of the stream. Exact
        (Clopper & Pearson 1934) when all of a group are 0 or 1, by betting otherwise.
    confidence_level : float
        To be held by the window and the stream together, for each group.
    window_part : float
        Part of the error that the window may use, strictly between 0 and 1.

    Raises
    ------
    InsufficientDataError
        If there are fewer than 2 observations.
    DataError
        If an argument is out of its range.
    """
    check_level(confidence_level)
    if not 0 < window_part < 1:
        raise DataError(f"window_part {window_part!r} is outside (0, 1); 0.2 is usual")
    rows = np.asarray(values, np.float64)
    rows = as_rows(
        rows[:, None] if rows.ndim == 1 else rows, rows.shape[-1] if rows.ndim > 1 else 1
    )
    if len(rows) < 2:
        raise InsufficientDataError(
            f"a reference window needs at least 2 observations, there are {len(rows)}",
            n=len(rows),
            n_needed=2,
        )
    level = 1 - (1 - confidence_level) * window_part
    ends = [window_interval(column, level) for column in rows.T]
    return ReferenceWindow(
        null=NullRange([low for low, _ in ends], [high for _, high in ends]),
        window_level=level,
        stream_level=1 - (1 - confidence_level) * (1 - window_part),
        mean=rows.mean(axis=0),
        n=len(rows),
    )


def window_interval(column: FloatArray, level: float, *, points: int = 1001) -> tuple[float, float]:
    """Return an interval for the mean of observations in [0, 1], shape (n,), at this level.

    ``points`` are the candidates of an interval by betting: fewer are faster, and make it wider.
    """
    if not ((column == 0) | (column == 1)).all():
        betting = BettingInterval(confidence_level=level, points=points)
        betting.update_many(column)
        return betting.interval()
    from scipy.special import betaincinv

    n, ones, tail = len(column), float(column.sum()), (1 - level) / 2
    lower = float(betaincinv(ones, n - ones + 1, tail)) if ones > 0 else 0.0
    upper = float(betaincinv(ones + 1, n - ones, 1 - tail)) if ones < n else 1.0
    return lower, upper

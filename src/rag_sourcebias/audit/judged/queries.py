"""Intervals of single queries for a judged ranking."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.intervals.crc.per_query import per_query_intervals
from rag_sourcebias.intervals.ranking import JudgedRanking
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_parts import QueryIntervals

__all__ = ["query_intervals"]


def query_intervals(
    system: str,
    measure: str,
    *,
    human: JudgedRanking,
    judge: JudgedRanking,
    place: npt.NDArray[np.int64],
    config: JudgedConfig,
) -> QueryIntervals:
    """Give every query of the judge an interval by the default conformal rule.

    Parameters
    ----------
    place : int64 array
        Index of each human query among the judge's.

    Raises
    ------
    CalibrationError
        With too few labelled queries for the confidence level.
    """
    labels = judge.ranked_labels(measure, gain=config.gain, min_grade=config.min_grade)
    y = human.values(measure, gain=config.gain, min_grade=config.min_grade)
    found = per_query_intervals(
        labels.take(place), y, labels, confidence_level=config.confidence_level
    )
    known = np.full(labels.n_queries, np.nan)
    known[place] = y
    return QueryIntervals(
        measure=measure,
        system=system,
        query_ids=judge.labels.query_ids,
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        human=known,
        highest=float(
            labels.total(np.full(len(labels.weights), labels.gains[-1])).max(initial=0.0)
        ),
        rule=found.rule,
        confidence_level=config.confidence_level,
        assumptions=found.assumptions,
    )

"""The figures of [K] Table 3: what the majority of annotators says, and how often all agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals.classical import wilson_interval
from rag_sourcebias.types.annotations import (
    Annotations,
    AnswerTable,
    MajorityShare,
    MajorityTable,
)

__all__ = ["majority_tables"]


def majority_tables(
    annotations: Annotations, *, min_answers: int | None = None, confidence_level: float = 0.95
) -> tuple[MajorityTable, ...]:
    """Majority shares of every question, as in [K] Table 3.

    Parameters
    ----------
    annotations : Annotations
    min_answers : int or None
        Units with fewer answers are left out, and counted. None takes 3, as [K] had at least, or
        the number of annotators where there are fewer.
    confidence_level : float
        Of the Wilson intervals: 0 of 50 still leaves up to 7 % possible.

    Returns
    -------
    tuple of MajorityTable
        One per question; where units are single texts, one per question and source. Questions
        without a unit that has enough answers have no shares.

    Raises
    ------
    DataError
        If ``min_answers`` is not in 1 … number of annotators.
    """
    most = len(annotations.annotators)
    needed = min(3, most) if min_answers is None else min_answers
    if not 1 <= needed <= most:
        raise DataError(f"min_answers {needed!r} is not in 1 … {most}, the number of annotators")
    single = all(len(unit.sources) == 1 for unit in annotations.units)
    groups: dict[str | None, npt.NDArray[np.bool_]] = {
        None: np.ones(len(annotations.units), dtype=np.bool_)
    }
    if single:
        of = np.array([unit.sources[0] for unit in annotations.units])
        groups = {name: of == name for name in dict.fromkeys(of.tolist())}
    return tuple(
        _majority(table, source, members, needed, confidence_level)
        for table in annotations.tables
        for source, members in groups.items()
    )


def _majority(
    table: AnswerTable,
    source: str | None,
    members: npt.NDArray[np.bool_],
    needed: int,
    level: float,
) -> MajorityTable:
    codes = table.codes[members]
    counts = (codes[:, :, None] == np.arange(len(table.categories))).sum(axis=1)
    answers = counts.sum(axis=1)
    enough = answers >= needed
    counts, answers = counts[enough], answers[enough]
    n = len(counts)
    won = 2 * counts > answers[:, None]
    unanimous = counts == answers[:, None]
    wins, agreed = won.sum(axis=0).tolist(), unanimous.sum(axis=0).tolist()
    return MajorityTable(
        question=table.question,
        source=source,
        n_units=n,
        n_no_majority=int((~won.any(axis=1)).sum()),
        n_too_few=int((~enough).sum()),
        shares=tuple(
            MajorityShare(
                category=name,
                n=wins[code],
                share=wilson_interval(wins[code], n, confidence_level=level),
                n_unanimous=agreed[code],
                unanimous=agreed[code] / wins[code] if wins[code] else None,
            )
            for code, name in enumerate(table.categories if n else ())
        ),
    )

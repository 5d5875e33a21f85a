"""One verb for judged evaluations, of items or of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from rag_sourcebias.audit.judged.items import judge_items_with_intervals
from rag_sourcebias.audit.judged.ranking import judge_ranking_with_intervals
from rag_sourcebias.errors import DataError
from rag_sourcebias.types.judged import JudgedReport
from rag_sourcebias.types.judged_items import JudgedItems
from rag_sourcebias.types.labels import LabelDistributions
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels

__all__ = ["judge_with_intervals"]


@overload
def judge_with_intervals(
    data: JudgedItems,
    /,
    **options: Any,  # noqa: ANN401 - as the two functions declare
) -> JudgedReport: ...
@overload
def judge_with_intervals(
    data: Run | Sequence[Run],
    human: Qrels,
    judge: LabelDistributions,
    /,
    **options: Any,  # noqa: ANN401
) -> JudgedReport: ...
def judge_with_intervals(
    data: JudgedItems | Run | Sequence[Run],
    human: Qrels | None = None,
    judge: LabelDistributions | None = None,
    /,
    **options: Any,
) -> JudgedReport:
    """Put intervals on an evaluation that a judge made and people checked in part.

    Parameters
    ----------
    data : JudgedItems, or Run or sequence of Run
        Items with human and judge values
        (:func:`~rag_sourcebias.audit.judged.items.judge_items_with_intervals`), or rankings
        (:func:`~rag_sourcebias.audit.judged.ranking.judge_ranking_with_intervals`).
    human : Qrels
        For rankings: judgments by people, of some queries.
    judge : LabelDistributions
        For rankings: labels by the judge, of all queries.
    **options
        Those of the two functions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(5, 2, 500)
    >>> human = np.where(np.arange(500) < 50, truth, np.nan)
    >>> items = JudgedItems(ids=tuple(map(str, range(500))), human=human, judge=truth + 1)
    >>> report = judge_with_intervals(items, measure="quality")
    >>> print(report.mean("quality").interval.method)
    regression on the judge
    """
    if isinstance(data, JudgedItems):
        if human is not None or judge is not None:
            raise DataError("items carry their human and judge values; give nothing beside them")
        return judge_items_with_intervals(data, **options)
    if human is None or judge is None:
        raise DataError("runs need human judgments (Qrels) and judge labels (LabelDistributions)")
    return judge_ranking_with_intervals(data, human, judge, **options)

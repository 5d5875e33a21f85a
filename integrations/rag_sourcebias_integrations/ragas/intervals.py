"""Intervals for what ragas scored, from human labels of some of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from ragas.dataset_schema import EvaluationResult

from rag_sourcebias.audit.judged import judge_items_with_intervals
from rag_sourcebias.errors import DataError
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.judged_items import JudgedItems
from rag_sourcebias_integrations.ragas.convert import Human, judged_items
from rag_sourcebias_integrations.ragas.results import EvaluationResultWithIntervals

__all__ = ["OnNan", "intervals"]

OnNan: TypeAlias = Literal["mean", "worst-case", "drop", "raise"]
_ON_NAN = ("mean", "worst-case", "drop", "raise")


def intervals(
    result: Any,  # noqa: ANN401
    human: Human,
    *,
    metric: str | None = None,
    id: str | None = None,
    method: str = "auto",
    target: Literal["population", "pool", "unlabeled"] = "population",
    confidence_level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    on_nan: OnNan = "mean",
    seed: int = 0,
) -> Any:  # noqa: ANN401
    """Interval for the mean that people would give, with a metric as the judge.

    The labelled rows must be a random draw; where they look otherwise a note says so.

    Parameters
    ----------
    result : EvaluationResult, Experiment, or sequence
        What ``evaluate`` or an ``@experiment`` returned; or rows (mappings, pydantic models); or
        ``MetricResult`` objects or numbers, such as what ``batch_score`` returns.
    human : mapping, sequence or str
        Labels by id; or one entry for each row, None or NaN where there is none (not for an
        experiment, whose rows come in the order in which they were finished); or the name of a
        field of the rows. Keys that are all ints count the rows from 0, except of an experiment.
    metric : str, optional
        The metric that judges what the people labelled; None takes the only one.
    id : str, optional
        The field by which labels are joined; None takes the first that the rows have of ``id``,
        ``item_id``, ``sample_id``, ``example_id``, ``user_input`` and ``question``.
    method : str
        Of :func:`rag_sourcebias.intervals.mean_interval`; ``"auto"`` is its default: regression
        on the judge, or labels alone where there are too few for it.
    target, confidence_level, bounds
        As there; labels outside ``bounds`` are refused.
    on_nan : {"mean", "worst-case", "drop", "raise"}
        What to do with rows that the judge failed on. ``"mean"``: they count with its mean score,
        which keeps the interval valid whatever made it fail. ``"worst-case"``: the hull over
        all they might have scored. ``"drop"``: the interval is for the others only. Their number
        is in the notes.
    seed : int

    Returns
    -------
    EvaluationResultWithIntervals or Interval
        The former for an ``EvaluationResult``, with the intervals it may already have.

    Raises
    ------
    DataError
        If labels and rows do not go together, or with ``on_nan="raise"`` a score is NaN.
    InsufficientDataError
        With fewer than 2 labels.
    """
    if on_nan not in _ON_NAN:
        raise DataError(f"on_nan {on_nan!r} is not one of {', '.join(_ON_NAN)}")
    items, name = judged_items(result, human, metric=metric, id=id)
    kept, note = _without_nan(items, name, on_nan)
    report = judge_items_with_intervals(
        kept,
        measure=name,
        config=JudgedConfig(
            method="regression" if method == "auto" else method,
            target=target,
            confidence_level=confidence_level,
            per_query=False,
            coverage_runs=0,
            seed=seed,
        ),
        bounds=bounds,
        missing="worst-case" if on_nan == "worst-case" else "mean",
    )
    found = report.means[0].interval
    found = replace(found, notes=(*found.notes, *note, *report.warnings))
    if isinstance(result, EvaluationResult):
        return EvaluationResultWithIntervals.from_result(result, name, found, items.human)
    return found


def _without_nan(
    items: JudgedItems, name: str, on_nan: OnNan
) -> tuple[JudgedItems, tuple[str, ...]]:
    lost = ~items.judged
    n = int(np.count_nonzero(lost))
    if not n or on_nan not in ("drop", "raise"):
        return items, ()
    labeled = int(np.count_nonzero(lost & items.labeled))
    first = items.ids[int(np.flatnonzero(lost)[0])]
    what = (
        f"{n} of {len(items)} rows have no {name}, first {first!r:.60}, {labeled} of them labelled"
    )
    if on_nan == "raise":
        raise DataError(
            f"{what}; score them again, or choose how they count: on_nan='mean' or 'drop'"
        )
    return items.take(items.judged), (f"{what}; they are left out",)

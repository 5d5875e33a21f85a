"""A ragas result that carries intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ragas.dataset_schema import EvaluationResult

from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias_integrations._require import require

__all__ = ["EvaluationResultWithIntervals"]


@dataclass(repr=False)
class EvaluationResultWithIntervals(EvaluationResult):
    """What ``evaluate`` returned, with the mean that people would give for some of its metrics.

    Scores, items and costs are those of the original, which stays as it is.

    Parameters
    ----------
    intervals : mapping of str to Interval
        By metric. The estimate is the mean human value, not the mean score of the metric.
    human : mapping of str to float64 array of shape (n_rows,)
        By metric, the labels used; NaN where there was none.
    """

    intervals: Mapping[str, Interval] = field(default_factory=dict)
    human: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_result(
        cls, result: EvaluationResult, metric: str, interval: Interval, human: FloatArray
    ) -> EvaluationResultWithIntervals:
        """Add an interval; those that the result has are kept."""
        old = {f.name: getattr(result, f.name) for f in fields(result)}
        old["intervals"] = {**old.get("intervals", {}), metric: interval}
        old["human"] = {**old.get("human", {}), metric: human}
        return cls(**old)

    def __repr__(self) -> str:
        parts = []
        for name, mean in self._repr_dict.items():
            found = self.intervals.get(name)
            more = (
                f" (people: {found.estimate:.4f} [{found.lower:.4f}, {found.upper:.4f}])"
                if found
                else ""
            )
            parts.append(f"'{name}': {mean:.4f}{more}")
        return "{" + ", ".join(parts) + "}"

    def to_pandas(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Return ragas' table of rows, with the human labels of a metric as ``<metric>_human``."""
        table = super().to_pandas(*args, **kwargs)
        return table.assign(**{f"{name}_human": labels for name, labels in self.human.items()})

    def intervals_to_pandas(self) -> Any:  # noqa: ANN401
        """Return a table with one row for each metric that has an interval.

        Columns: metric, score (its mean over the rows it scored), estimate (the mean human
        value), lower, upper, n_labeled, n_unlabeled, n_nan, method, notes.
        """
        rows = []
        for name, found in self.intervals.items():
            scores = self[name]
            rows.append(
                {
                    "metric": name,
                    "score": self._repr_dict[name],
                    "estimate": found.estimate,
                    "lower": found.lower,
                    "upper": found.upper,
                    "n_labeled": found.n_labeled,
                    "n_unlabeled": found.n_unlabeled,
                    "n_nan": sum(score is None or math.isnan(score) for score in scores),
                    "method": found.method,
                    "notes": "; ".join(found.notes),
                }
            )
        pandas = require("pandas", package="pandas", extra="ragas", feature="a table of intervals")
        return pandas.DataFrame(rows)

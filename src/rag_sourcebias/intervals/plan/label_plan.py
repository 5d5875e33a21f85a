"""How many documents or queries to label, as an answer."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.intervals.plan.item_plan import saving

__all__ = ["LabelPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """How far labels of documents go, beside whole queries and labels without a judge.

    Parameters
    ----------
    n_labels : int
        Documents to label, spread over all queries, those of the pilot included.
    half_width : float
        Expected with them, in the unit of the utility.
    half_width_queries, half_width_alone : float or None
        Expected if as many labels went to whole queries, with the judge on the other queries and
        without a judge; None if they do not make two queries.
    labels_queries : int or None
        Labels of whole queries, with the judge, for the same half-width; None if the pool has not
        as many.
    labels_alone : int
        Labels of whole queries, without a judge, for the same half-width; may be more than the
        pool has.
    n_queries : int
        Queries of the pool.
    target : str
    confidence_level : float
    n_pilot : int
        Human labels the plan rests on; with 0 every number is a guess.
    assumptions : tuple of str
    """

    n_labels: int
    half_width: float
    half_width_queries: float | None
    half_width_alone: float | None
    labels_queries: int | None
    labels_alone: int
    n_queries: int
    target: str
    confidence_level: float
    n_pilot: int
    assumptions: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Share of labels saved against labels alone; negative if more are needed."""
        return 1 - self.n_labels / self.labels_alone

    def __str__(self) -> str:
        whole = "-" if self.labels_queries is None else f"{self.labels_queries:,}"
        basis = (
            f"from a pilot of {self.n_pilot:,} labels"
            if self.n_pilot
            else "a guess from the judge's own spread, no human label yet"
        )
        return (
            f"{self.n_labels:,} documents over {self.n_queries:,} queries for "
            f"±{self.half_width:.3g} at {100 * self.confidence_level:.4g}% ({self.target}); "
            f"whole queries need {whole} labels with the judge, {self.labels_alone:,} without: "
            f"{saving(self.saved)} ({basis})"
        )

"""Which retrievals a monitor takes as one observation."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.monitor.sequential.aggregation import Aggregator

__all__ = ["Aggregation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Retrievals that belong together become one observation: their average.

    Parameters
    ----------
    key : str
        ``"query"`` (its hash; retrievals without one stand for themselves), or the name of a
        label, such as ``"session"``; retrievals without that label stand for themselves.
    max_seconds : float
        An observation is complete this long after its first retrieval.
    max_events : int
        It is complete with this many retrievals, too.
    max_open : int
        Observations collected at once, for each set of labels; with more, the oldest ends early.
    remember : int
        Keys of complete observations that are kept, most recent first, for each set of labels:
        their retrievals are counted as repeats and left out. 0 begins a new observation instead,
        as sessions want it.
    """

    key: str = "query"
    max_seconds: float = 3600.0
    max_events: int = 1_000
    max_open: int = 1_000
    remember: int = 5_000

    def aggregator(self, groups: int) -> Aggregator:
        """Return a new aggregator of so many values."""
        return Aggregator(
            groups=groups,
            max_seconds=self.max_seconds,
            max_events=self.max_events,
            max_open=self.max_open,
            remember=self.remember,
        )

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
    max_seconds, max_events, max_open, remember
        As of :class:`~rag_sourcebias.monitor.sequential.aggregation.Aggregator`, for each set of
        labels. ``remember=0`` suits sessions.
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

"""Metrics as the text that Prometheus reads, for a server that is not the application's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, generate_latest

from rag_sourcebias.monitor.log.reading import LogSummary
from rag_sourcebias.monitor.reader import LostEvents
from rag_sourcebias.types.canary import CanaryPoint
from rag_sourcebias.types.monitor import Alarm, MonitorSnapshot
from rag_sourcebias_integrations.prometheus.collector import SkewCollector

__all__ = ["SkewExposition"]


class SkewExposition:
    """A :class:`SkewCollector` in a registry of its own.

    Parameters
    ----------
    snapshots, canary, lost, log
        As of :class:`SkewCollector`.
    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[MonitorSnapshot]],
        *,
        canary: Callable[[], Iterable[CanaryPoint]] | None = None,
        lost: Callable[[], LostEvents] | None = None,
        log: Callable[[], LogSummary | None] | None = None,
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._collector = SkewCollector(
            snapshots, canary=canary, lost=lost, log=log, registry=self._registry
        )

    def alarm(self, alarm: Alarm) -> None:
        """Count one alarm."""
        self._collector.alarm(alarm)

    def snapshots(self, snapshots: Iterable[MonitorSnapshot]) -> None:
        """Do nothing: states are read when they are scraped."""

    def close(self) -> None:
        """Nothing waits."""

    def text(self) -> bytes:
        """Return the metrics as they are now."""
        return bytes(generate_latest(self._registry))

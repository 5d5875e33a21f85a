"""Prometheus: what a monitor knows, read when it is scraped."""

from rag_sourcebias_integrations.prometheus import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.prometheus.collector import SkewCollector, SkewExposition

__all__ = ["SkewCollector", "SkewExposition"]

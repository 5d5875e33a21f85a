"""OpenTelemetry: what a monitor knows as instruments, and what a retrieval was on its span."""

from rag_sourcebias_integrations.opentelemetry import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.opentelemetry.instruments import SkewInstruments, SkewSpanObserver

__all__ = ["SkewInstruments", "SkewSpanObserver"]

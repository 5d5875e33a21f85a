"""OpenTelemetry: what a monitor knows, as observable instruments."""

from rag_sourcebias_integrations.opentelemetry import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.opentelemetry.instruments import SkewInstruments

__all__ = ["SkewInstruments"]

"""Common sections are in blocks now."""

from rag_sourcebias.report.blocks import assumed, caveats, data, reading

__all__ = ["assumed", "caveats", "data", "reading"]

"""Tables are blocks now."""

from rag_sourcebias.report.blocks import Table

__all__ = ["Table"]

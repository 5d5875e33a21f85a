"""Bars are blocks now."""

from rag_sourcebias.report.blocks import Bar

__all__ = ["Bar"]

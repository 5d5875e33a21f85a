"""Passes on what moved."""

from rag_sourcebias.report.html import failure_text

__all__ = ["failure_text"]

"""Passes on what moved."""

from rag_sourcebias.report.blocks import MET

__all__ = ["MET"]

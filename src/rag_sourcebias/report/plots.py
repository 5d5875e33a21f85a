"""Headings of pictures are drawn where pictures are."""

from rag_sourcebias.report.svg import draw_heading

__all__ = ["draw_heading"]

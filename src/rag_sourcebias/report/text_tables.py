"""Passes on what moved."""

from rag_sourcebias.report.text_stats import renamed, text_key, text_notes, text_table

__all__ = ["SOURCE_SECTION", "renamed", "text_key", "text_notes", "text_table"]

#: Section of a report of sources.
SOURCE_SECTION = (
    "What the texts look like",
    "How long the texts of each source are and how much of the original's wording the other "
    "versions keep, before any retriever sees them.",
)

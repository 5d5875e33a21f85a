"""Tables of facts are blocks now."""

from rag_sourcebias.report.blocks import environment_table, summary_table

__all__ = ["environment_table", "summary_table"]

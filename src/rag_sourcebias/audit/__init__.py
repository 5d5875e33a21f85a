"""The verbs: whole audits that return reports."""

from rag_sourcebias.audit.dataset import audit_source
from rag_sourcebias.audit.judged import (
    judge_items_with_intervals,
    judge_ranking_with_intervals,
    judge_with_intervals,
)
from rag_sourcebias.audit.source import measure_source_bias

__all__ = [
    "audit_source",
    "judge_items_with_intervals",
    "judge_ranking_with_intervals",
    "judge_with_intervals",
    "measure_source_bias",
]

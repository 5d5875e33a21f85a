"""Judged evaluations: of items such as answers, and of rankings."""

from rag_sourcebias.audit.judged.items import judge_items_with_intervals
from rag_sourcebias.audit.judged.ranking import judge_ranking_with_intervals
from rag_sourcebias.audit.judged.verb import judge_with_intervals

__all__ = ["judge_items_with_intervals", "judge_ranking_with_intervals", "judge_with_intervals"]

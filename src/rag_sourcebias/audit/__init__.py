"""The verbs: whole audits that return reports.

Judged evaluations and summaries of texts are loaded when first used: an audit of rankings needs
nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias._lazy import lazy_names
from rag_sourcebias.audit.dataset import audit_source
from rag_sourcebias.audit.source import measure_source_bias

if TYPE_CHECKING:
    from rag_sourcebias.audit.annotated_twins import annotation_units
    from rag_sourcebias.audit.answers import measure_answer_bias
    from rag_sourcebias.audit.answers_encoders import audit_answers
    from rag_sourcebias.audit.debias import measure_debias
    from rag_sourcebias.audit.debias_scores import score_debias
    from rag_sourcebias.audit.debias_search import search_debias
    from rag_sourcebias.audit.explain import explain_sources
    from rag_sourcebias.audit.judged import (
        judge_items_with_intervals,
        judge_ranking_with_intervals,
        judge_with_intervals,
    )
    from rag_sourcebias.audit.pairs import check_paired_corpus
    from rag_sourcebias.audit.sharded import (
        LocalEngine,
        ShardedRetriever,
        audit_source_sharded,
    )
    from rag_sourcebias.audit.source_texts import source_text_statistics
    from rag_sourcebias.audit.style import measure_style_bias
    from rag_sourcebias.audit.style_texts import audit_style
    from rag_sourcebias.audit.text_summaries import text_statistics

__all__ = [
    "LocalEngine",
    "ShardedRetriever",
    "annotation_units",
    "audit_answers",
    "audit_source",
    "audit_source_sharded",
    "audit_style",
    "check_paired_corpus",
    "explain_sources",
    "judge_items_with_intervals",
    "judge_ranking_with_intervals",
    "judge_with_intervals",
    "measure_answer_bias",
    "measure_debias",
    "measure_source_bias",
    "measure_style_bias",
    "score_debias",
    "search_debias",
    "source_text_statistics",
    "text_statistics",
]

_HOMES = {
    "annotated_twins": ("annotation_units",),
    "answers": ("measure_answer_bias",),
    "answers_encoders": ("audit_answers",),
    "debias": ("measure_debias",),
    "debias_scores": ("score_debias",),
    "debias_search": ("search_debias",),
    "explain": ("explain_sources",),
    "judged": (
        "judge_items_with_intervals",
        "judge_ranking_with_intervals",
        "judge_with_intervals",
    ),
    "pairs": ("check_paired_corpus",),
    "sharded": (
        "LocalEngine",
        "ShardedRetriever",
        "audit_source_sharded",
    ),
    "source_texts": ("source_text_statistics",),
    "style": ("measure_style_bias",),
    "style_texts": ("audit_style",),
    "text_summaries": ("text_statistics",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

"""The verbs: whole audits that return reports.

Judged evaluations and summaries of texts are loaded when first used: an audit of rankings needs
nothing of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "LocalEngine": "sharded",
    "ShardedRetriever": "sharded",
    "annotation_units": "annotated_twins",
    "audit_answers": "answers_encoders",
    "audit_source_sharded": "sharded",
    "audit_style": "style_texts",
    "check_paired_corpus": "pairs",
    "explain_sources": "explain",
    "measure_answer_bias": "answers",
    "measure_debias": "debias",
    "measure_style_bias": "style",
    "score_debias": "debias_scores",
    "search_debias": "debias_search",
    "source_text_statistics": "source_texts",
    "text_statistics": "text_summaries",
}  # all others: judged


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name in __all__:
        home = _HOMES.get(name, "judged")
        return getattr(import_module(f"rag_sourcebias.audit.{home}"), name)
    raise AttributeError(f"module 'rag_sourcebias.audit' has no attribute {name!r}")

"""Measure whether a retriever favours sources for reasons other than relevance.

The data model (``Run``, ``Qrels``, ``TagTable``, …) and the verbs (``audit_source``,
``audit_style``, ``audit_answers``, …) are here; the rest lives in the sub-packages. Importing this
package imports numpy and nothing else; names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_sourcebias._version import __version__

if TYPE_CHECKING:
    from rag_sourcebias.audit import (
        audit_answers,
        audit_source,
        audit_style,
        check_paired_corpus,
        explain_sources,
        judge_with_intervals,
        measure_answer_bias,
        measure_debias,
        measure_source_bias,
        measure_style_bias,
    )
    from rag_sourcebias.corpora import build_paired_corpus, estimate_paired_corpus
    from rag_sourcebias.errors import SourceBiasError
    from rag_sourcebias.inference import relative_delta_interval
    from rag_sourcebias.intervals import mean_interval
    from rag_sourcebias.io import (
        join_judged,
        load_dataset,
        load_sample,
        read_answer_texts,
        read_beir,
        read_judged_items,
        read_label_distributions,
        read_qrels,
        read_report_json,
        read_run,
        read_styled_texts,
        read_tags,
    )
    from rag_sourcebias.measures import relative_delta, source_scores
    from rag_sourcebias.report import write_report
    from rag_sourcebias.types import (
        AnswerBiasReport,
        AnswerConfig,
        AnswerTexts,
        AuditConfig,
        Corpus,
        Dataset,
        DebiasConfig,
        DebiasReport,
        DocTags,
        ExplainConfig,
        ExplainReport,
        Interval,
        JudgedConfig,
        JudgedItems,
        JudgedReport,
        LabelDistributions,
        PairCheckConfig,
        PairReport,
        PairThresholds,
        Qrels,
        Query,
        RankedList,
        Run,
        SkewReport,
        StyleConfig,
        StyledTexts,
        StyleReport,
        TagTable,
    )

_HOME = {
    "audit": (
        "audit_answers",
        "audit_source",
        "audit_style",
        "check_paired_corpus",
        "explain_sources",
        "judge_with_intervals",
        "measure_answer_bias",
        "measure_debias",
        "measure_source_bias",
        "measure_style_bias",
    ),
    "corpora": ("build_paired_corpus", "estimate_paired_corpus"),
    "errors": ("SourceBiasError",),
    "inference": ("relative_delta_interval",),
    "intervals": ("mean_interval",),
    "io": (
        "join_judged",
        "load_dataset",
        "load_sample",
        "read_answer_texts",
        "read_beir",
        "read_judged_items",
        "read_label_distributions",
        "read_qrels",
        "read_report_json",
        "read_run",
        "read_styled_texts",
        "read_tags",
    ),
    "measures": ("relative_delta", "source_scores"),
    "report": ("write_report",),
    "types": (
        "AnswerBiasReport",
        "AnswerConfig",
        "AnswerTexts",
        "AuditConfig",
        "Corpus",
        "Dataset",
        "DebiasConfig",
        "DebiasReport",
        "DocTags",
        "ExplainConfig",
        "ExplainReport",
        "Interval",
        "JudgedConfig",
        "JudgedItems",
        "JudgedReport",
        "LabelDistributions",
        "PairCheckConfig",
        "PairReport",
        "PairThresholds",
        "Qrels",
        "Query",
        "RankedList",
        "Run",
        "SkewReport",
        "StyleConfig",
        "StyleReport",
        "StyledTexts",
        "TagTable",
    ),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AnswerBiasReport",
    "AnswerConfig",
    "AnswerTexts",
    "AuditConfig",
    "Corpus",
    "Dataset",
    "DebiasConfig",
    "DebiasReport",
    "DocTags",
    "ExplainConfig",
    "ExplainReport",
    "Interval",
    "JudgedConfig",
    "JudgedItems",
    "JudgedReport",
    "LabelDistributions",
    "PairCheckConfig",
    "PairReport",
    "PairThresholds",
    "Qrels",
    "Query",
    "RankedList",
    "Run",
    "SkewReport",
    "SourceBiasError",
    "StyleConfig",
    "StyleReport",
    "StyledTexts",
    "TagTable",
    "__version__",
    "audit_answers",
    "audit_source",
    "audit_style",
    "build_paired_corpus",
    "check_paired_corpus",
    "estimate_paired_corpus",
    "explain_sources",
    "join_judged",
    "judge_with_intervals",
    "load_dataset",
    "load_sample",
    "mean_interval",
    "measure_answer_bias",
    "measure_debias",
    "measure_source_bias",
    "measure_style_bias",
    "read_answer_texts",
    "read_beir",
    "read_judged_items",
    "read_label_distributions",
    "read_qrels",
    "read_report_json",
    "read_run",
    "read_styled_texts",
    "read_tags",
    "relative_delta",
    "relative_delta_interval",
    "source_scores",
    "write_report",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name in _WHERE:
        return getattr(import_module(f"rag_sourcebias.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'rag_sourcebias' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""Judges: language models that grade, prompts to ask them with, and how good a judge is."""

from rag_sourcebias.judges.anchors import build_anchor_set, read_anchor_set, write_anchor_set
from rag_sourcebias.judges.audit import audit_judge
from rag_sourcebias.judges.calibration import audit_labels
from rag_sourcebias.judges.distributed import judge_with
from rag_sourcebias.judges.drift import check_drift, require_stable
from rag_sourcebias.judges.llm_judge import CorrectnessJudge, LLMJudge, RelevanceJudge
from rag_sourcebias.judges.prompts import (
    CORRECTNESS,
    RELEVANCE_DOCUMENT,
    RELEVANCE_PASSAGE,
    GradedPrompt,
)

__all__ = [
    "CORRECTNESS",
    "RELEVANCE_DOCUMENT",
    "RELEVANCE_PASSAGE",
    "CorrectnessJudge",
    "GradedPrompt",
    "LLMJudge",
    "RelevanceJudge",
    "audit_judge",
    "audit_labels",
    "build_anchor_set",
    "check_drift",
    "judge_with",
    "read_anchor_set",
    "require_stable",
    "write_anchor_set",
]

"""Judges: language models that grade relevance or correctness, and prompts to ask them with."""

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
]

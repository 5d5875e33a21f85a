"""ragas: embed with our encoders, score without answer style, and put intervals on results."""

from rag_sourcebias_integrations.ragas import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.ragas.intervals import EvaluationResultWithIntervals, intervals
from rag_sourcebias_integrations.ragas.metrics import (
    EncoderEmbedding,
    StyleAdjustedAnswerCorrectness,
    StyleAdjustedSimilarity,
)

__all__ = [
    "EncoderEmbedding",
    "EvaluationResultWithIntervals",
    "StyleAdjustedAnswerCorrectness",
    "StyleAdjustedSimilarity",
    "intervals",
]

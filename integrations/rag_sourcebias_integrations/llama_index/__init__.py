"""LlamaIndex: observe retrievals, tag nodes, embed, rerank and evaluate with this library."""

from rag_sourcebias_integrations.llama_index import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.llama_index.completer import LlamaIndexCompleter
from rag_sourcebias_integrations.llama_index.embeddings import (
    AdjustedResult,
    DebiasPostprocessor,
    EncoderEmbedding,
    StyleAdjustedSimilarity,
)
from rag_sourcebias_integrations.llama_index.evaluation import IntervalEvaluator
from rag_sourcebias_integrations.llama_index.observe import (
    ShadowedRetriever,
    SourceBiasEventHandler,
)
from rag_sourcebias_integrations.llama_index.tagging import SourceTagger

__all__ = [
    "AdjustedResult",
    "DebiasPostprocessor",
    "EncoderEmbedding",
    "IntervalEvaluator",
    "LlamaIndexCompleter",
    "ShadowedRetriever",
    "SourceBiasEventHandler",
    "SourceTagger",
    "StyleAdjustedSimilarity",
]

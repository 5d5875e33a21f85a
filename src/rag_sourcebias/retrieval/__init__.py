"""Retrievers whose every setting is known: BM25, exact dense search, rerankers."""

from rag_sourcebias.retrieval.cache import VectorCache
from rag_sourcebias.retrieval.cached import BatchedEncoder, CachedEncoder, CachedReranker
from rag_sourcebias.retrieval.dense import DenseSpec
from rag_sourcebias.retrieval.lexical import BM25Spec
from rag_sourcebias.retrieval.rerank import RerankedSpec, rerank, rerank_settings
from rag_sourcebias.retrieval.version_scores import version_scores

__all__ = [
    "BM25Spec",
    "BatchedEncoder",
    "CachedEncoder",
    "CachedReranker",
    "DenseSpec",
    "RerankedSpec",
    "VectorCache",
    "rerank",
    "rerank_settings",
    "version_scores",
]

"""Retrievers that the library brings: BM25, exact dense search, reranking, caches."""

from rag_sourcebias.retrieval.cache import VectorCache
from rag_sourcebias.retrieval.cached import CachedEncoder, CachedReranker
from rag_sourcebias.retrieval.dense import DenseRetriever, DenseSpec
from rag_sourcebias.retrieval.lexical import BM25Spec
from rag_sourcebias.retrieval.rerank import RerankedSpec, rerank

__all__ = [
    "BM25Spec",
    "CachedEncoder",
    "CachedReranker",
    "DenseRetriever",
    "DenseSpec",
    "RerankedSpec",
    "VectorCache",
    "rerank",
]

"""Retrievers whose every setting is known: BM25, exact dense search, rerankers.

Encoders, caches and indexes are loaded when first used: an audit of given runs needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias._lazy import lazy_names
from rag_sourcebias.retrieval.rerank import RerankedSpec, rerank, rerank_settings

if TYPE_CHECKING:
    from rag_sourcebias.retrieval.cache import VectorCache
    from rag_sourcebias.retrieval.cached import BatchedEncoder, CachedEncoder, CachedReranker
    from rag_sourcebias.retrieval.dense import DenseSpec
    from rag_sourcebias.retrieval.lexical import BM25Spec
    from rag_sourcebias.retrieval.versions import version_scores

_HOMES = {
    "cache": ("VectorCache",),
    "cached": ("BatchedEncoder", "CachedEncoder", "CachedReranker"),
    "dense": ("DenseSpec",),
    "lexical": ("BM25Spec",),
    "versions": ("version_scores",),
}

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

"""Chroma: collections as retrievers."""

from rag_sourcebias_integrations.chroma.retriever import ChromaSpec, chroma_spec

__all__ = ["ChromaSpec", "chroma_spec"]

"""Chroma: collections as retrievers, observed, tagged in place, and with another encoder.

Importing this package registers :class:`EncoderEmbeddingFunction` with Chroma.
"""

from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.follow import FollowedCollection, follow_collection
from rag_sourcebias_integrations.chroma.migration import (
    Migration,
    migrate_encoder,
    migrate_projection,
    restore_collection,
)
from rag_sourcebias_integrations.chroma.retriever import ChromaSpec, chroma_spec
from rag_sourcebias_integrations.chroma.tagging import (
    ChromaStore,
    open_store,
    tag_collection,
)

__all__ = [
    "ChromaSpec",
    "ChromaStore",
    "EncoderEmbeddingFunction",
    "FollowedCollection",
    "Migration",
    "chroma_spec",
    "follow_collection",
    "migrate_encoder",
    "migrate_projection",
    "open_store",
    "restore_collection",
    "tag_collection",
]

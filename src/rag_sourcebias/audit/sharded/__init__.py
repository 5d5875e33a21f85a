"""Audits of corpora that do not fit in memory, a shard at a time or on many machines.

Four steps over the shards (:mod:`scan`, :mod:`encode`, :mod:`search`, :mod:`collect`), each done by
an :class:`~rag_sourcebias.protocols.Engine` and kept in a :class:`WorkFolder`; then the measures of
an audit in memory, over the documents that were retrieved or judged.
"""

from rag_sourcebias.audit.sharded.local import LocalEngine
from rag_sourcebias.audit.sharded.retriever import ShardedRetriever
from rag_sourcebias.audit.sharded.verb import SHARD_DOCUMENTS, audit_source_sharded

__all__ = ["SHARD_DOCUMENTS", "LocalEngine", "ShardedRetriever", "audit_source_sharded"]

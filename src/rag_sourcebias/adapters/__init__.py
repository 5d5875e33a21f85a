"""Find the adapters that are installed, through entry points; imports no framework itself."""

from rag_sourcebias.adapters.completing import as_completer
from rag_sourcebias.adapters.factories import (
    ENGINE_GROUP,
    METRICS_GROUP,
    RETRIEVER_GROUP,
    engine_factory,
    metrics_factory,
    retriever_factory,
)
from rag_sourcebias.adapters.installed import ADAPTER_GROUP
from rag_sourcebias.adapters.instrumenting import instrument
from rag_sourcebias.adapters.searching import as_search, document_id

__all__ = [
    "ADAPTER_GROUP",
    "ENGINE_GROUP",
    "METRICS_GROUP",
    "RETRIEVER_GROUP",
    "as_completer",
    "as_search",
    "document_id",
    "engine_factory",
    "instrument",
    "metrics_factory",
    "retriever_factory",
]

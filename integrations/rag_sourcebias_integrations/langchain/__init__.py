"""LangChain: observe retrievals, tag documents, use our encoders; needs langchain-core only.

``StyleAdjustedDistance`` also needs langchain-classic, and is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from rag_sourcebias_integrations.langchain import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.langchain.completer import LangChainCompleter
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor, EncoderEmbeddings
from rag_sourcebias_integrations.langchain.observe import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever, ShadowedRetriever
from rag_sourcebias_integrations.langchain.vectorstore import SourceTagger, TaggedVectorStore

if TYPE_CHECKING:
    from rag_sourcebias_integrations.langchain.similarity import StyleAdjustedDistance

__all__ = [
    "DebiasCompressor",
    "EncoderEmbeddings",
    "InstrumentedRetriever",
    "LangChainCompleter",
    "ShadowedRetriever",
    "SourceBiasCallbackHandler",
    "SourceTagger",
    "StyleAdjustedDistance",
    "TaggedVectorStore",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "StyleAdjustedDistance":
        from rag_sourcebias_integrations.langchain.similarity import StyleAdjustedDistance

        return StyleAdjustedDistance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

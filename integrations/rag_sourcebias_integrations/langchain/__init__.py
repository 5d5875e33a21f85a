"""LangChain: observe retrievals, tag documents, use our encoders; needs langchain-core only."""

from rag_sourcebias_integrations.langchain import _framework  # noqa: F401 - must come first
from rag_sourcebias_integrations.langchain.callback import SourceBiasCallbackHandler
from rag_sourcebias_integrations.langchain.compressor import DebiasCompressor
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.retriever import InstrumentedRetriever
from rag_sourcebias_integrations.langchain.tagging import SourceTagger
from rag_sourcebias_integrations.langchain.vectorstore import TaggedVectorStore

__all__ = [
    "DebiasCompressor",
    "EncoderEmbeddings",
    "InstrumentedRetriever",
    "SourceBiasCallbackHandler",
    "SourceTagger",
    "TaggedVectorStore",
]

"""Models that need torch; the only package of the library that imports it, on first use."""

from rag_sourcebias.neural.encoder import SentenceEncoder
from rag_sourcebias.neural.local_llm import LocalCompleter
from rag_sourcebias.neural.query_likelihood import QueryLikelihoodReranker
from rag_sourcebias.neural.reranker import CrossEncoderReranker

__all__ = ["CrossEncoderReranker", "LocalCompleter", "QueryLikelihoodReranker", "SentenceEncoder"]

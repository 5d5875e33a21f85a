"""Models: the only home of torch, which is imported when a model is made."""

from rag_sourcebias.neural.encoder import SentenceEncoder
from rag_sourcebias.neural.query_likelihood import QueryLikelihoodReranker
from rag_sourcebias.neural.reranker import CrossEncoderReranker

__all__ = ["CrossEncoderReranker", "QueryLikelihoodReranker", "SentenceEncoder"]

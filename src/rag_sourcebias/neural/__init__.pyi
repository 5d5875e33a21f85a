from .causal import LocalCompleter as LocalCompleter
from .causal import QueryLikelihoodReranker as QueryLikelihoodReranker
from .loading import CrossEncoderReranker as CrossEncoderReranker
from .loading import SentenceEncoder as SentenceEncoder

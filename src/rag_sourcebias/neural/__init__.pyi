from .loading import SentenceEncoder as SentenceEncoder

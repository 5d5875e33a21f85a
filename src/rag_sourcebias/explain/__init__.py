"""What distinguishes sources for a retriever: spectra, words, perplexity, score gaps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

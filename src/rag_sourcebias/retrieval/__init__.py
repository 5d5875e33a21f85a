"""Retrievers whose every setting is known: BM25, exact dense search, rerankers, caches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Nouns that every part shares: documents, runs, judgments, intervals, errors, protocols."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

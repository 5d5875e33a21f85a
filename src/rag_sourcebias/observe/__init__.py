"""Observe retrievals inside a running application, without harm to it."""

import lazy_loader

from rag_sourcebias.core.moved import moved_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = moved_names(__name__, _load)

"""Make a retriever indifferent to who wrote a text, and prove what that changed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""How much a correctness score rewards the style of an answer: measured, and corrected."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

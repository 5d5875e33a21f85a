"""What is measured per query, and how sure one can be of it: intervals, tests, sequences."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

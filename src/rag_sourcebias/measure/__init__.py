"""What is measured per query, before any inference: relevance by source, exposure, texts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

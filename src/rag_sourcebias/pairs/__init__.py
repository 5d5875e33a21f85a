"""Paired corpora: rewrites by language models, checks of them, blind annotation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

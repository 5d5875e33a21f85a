"""Whether a retriever favours texts by people or by language models: audits, sharded ones too."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Files in and out: TREC, BEIR, tables, tags, shards, samples."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

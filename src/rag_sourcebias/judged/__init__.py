"""Evaluations that a judge labelled and people labelled in part; judges, and audits of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

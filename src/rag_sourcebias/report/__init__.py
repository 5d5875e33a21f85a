"""A report as blocks, and its renderers: HTML, Markdown, terminal, six kinds of plot."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

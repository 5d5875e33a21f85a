"""Measure whether a retriever favours sources for reasons other than relevance.

The data model (``Run``, ``Qrels``, ``TagTable``, …) and the verbs (``audit``,
``interval``, ``audit_style``, …) are here; the rest lives in the sub-packages. Importing this
package imports numpy and nothing else; names are loaded when first used.
"""

import lazy_loader

from rag_sourcebias._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

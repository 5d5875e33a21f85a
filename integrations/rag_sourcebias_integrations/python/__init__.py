"""Plain functions as retrievers."""

from rag_sourcebias_integrations.python.attach import attach

__all__ = ["attach"]

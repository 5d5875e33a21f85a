"""Language models behind one seam: asked concurrently, retried, cached, counted."""

from rag_sourcebias.llm.ask import Asker, Outcome, ask_all
from rag_sourcebias.llm.cache import CompletionCache
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.llm.openai_server import OpenAICompleter
from rag_sourcebias.llm.retry import RetryPolicy

__all__ = [
    "Asker",
    "CompletionCache",
    "OpenAICompleter",
    "Outcome",
    "Prices",
    "RetryPolicy",
    "ask_all",
]

"""The event handler for LlamaIndex's dispatcher.

The dispatcher swallows every exception of a handler without a word, so this one counts its own
failures (``Recorder.dropped``).
"""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler

from rag_sourcebias.instrument import Recorder
from rag_sourcebias_integrations.llama_index.listener import RetrievalListener
from rag_sourcebias_integrations.llama_index.spans import SourceBiasSpanHandler

__all__ = ["LABEL_TAGS", "SourceBiasEventHandler"]

#: Keys of ``instrument_tags({...})`` that become labels. Others may name a user or a request.
LABEL_TAGS = ("collection", "route", "tenant")


class SourceBiasEventHandler(BaseEventHandler):
    """Record retrievals; ``get_dispatcher().add_event_handler(...)`` switches it on.

    ``instrument("llama-index", observer)`` does that, and removes it again. What is recorded is
    the list that the outermost retriever returned, once per query: retrievers inside fusion,
    router and other composite retrievers do not count. Node postprocessors come later and change
    nothing of it. Labels are ``retriever`` (the class) and some of the application's
    ``instrument_tags``.

    Before llama-index-core 0.14.9, a composite retriever with ``use_async`` called by ``retrieve``
    inside a running event loop (a notebook) asks its parts on a thread without the context: there
    the parts count as well.

    Parameters
    ----------
    recorder : Recorder
    spans : SourceBiasSpanHandler, optional
        Count only retrievals inside the object that it follows; add it to the dispatcher too.
    reranks : bool
        Also record the list of each ``ReRankEndEvent`` outside retrievers, as an event of its own
        with the label ``stage="rerank"``. Which postprocessors emit them is their choice.
    label_tags : tuple of str
        Keys of ``instrument_tags`` that become labels where their value is text. They must have
        few different values: no user, no request.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        spans: SourceBiasSpanHandler | None = None,
        reranks: bool = False,
        label_tags: tuple[str, ...] = LABEL_TAGS,
    ) -> None:
        super().__init__()
        listener = RetrievalListener(
            recorder,
            inside=None if spans is None else spans.inside,
            reranks=reranks,
            label_tags=tuple(label_tags),
        )
        # In front of the method: a call and a private attribute of pydantic less for every event.
        self.__dict__["handle"] = listener.take

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasEventHandler"

    def handle(self, event: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Take one event, in constant time: it may come on an event loop."""
        self.__dict__["handle"](event, **kwargs)

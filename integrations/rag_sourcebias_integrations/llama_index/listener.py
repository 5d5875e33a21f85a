"""What is done with each event of LlamaIndex; plain, because pydantic's attributes are slow."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.instrumentation.events.span import SpanDropEvent

from rag_sourcebias.instrument import Recorder, guarded
from rag_sourcebias.instrument.events import CheckedLabels
from rag_sourcebias_integrations.llama_index.convert import record_nodes
from rag_sourcebias_integrations.llama_index.inside import SpansInside

__all__ = ["RetrievalListener"]

_MOST_KNOWN = 1_000  # classes of retrievers; one may make them as it goes
_START, _END, _DROP, _RERANK = range(4)
_KINDS = (RetrievalStartEvent, RetrievalEndEvent, SpanDropEvent, ReRankEndEvent)

# What observers were told of, so that two handlers of one observer count it once. An event lives
# until all handlers have had it.
_reranked: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()


@cache
def _kind(event_class: type) -> int:
    """Position in ``_KINDS``, -1 for events that say nothing about retrievals."""
    return next((i for i, kind in enumerate(_KINDS) if issubclass(event_class, kind)), -1)


class RetrievalListener:
    """Begin, end and record retrievals as events announce them.

    Start and end of a retrieval carry the id of the same span, on every thread and task. Spans
    whose call raised are announced by an event as well, so that no span handler is needed for it.

    Parameters
    ----------
    recorder, reranks, label_tags
        See :class:`~rag_sourcebias_integrations.llama_index.SourceBiasEventHandler`.
    inside : SpansInside, optional
        Only retrievals in these spans count.
    """

    __slots__ = ("_inside", "_label_tags", "_labels", "_recorder", "_reranks")

    def __init__(
        self,
        recorder: Recorder,
        *,
        inside: SpansInside | None,
        reranks: bool,
        label_tags: tuple[str, ...],
    ) -> None:
        self._recorder = recorder
        self._inside = inside
        self._reranks = reranks
        self._label_tags = label_tags
        self._labels: dict[str, CheckedLabels] = {}

    def take(self, event: Any, **_: Any) -> None:  # noqa: ANN401
        """Take one event, in constant time: it may come on an event loop."""
        kind = _kind(event.__class__)
        if kind == _START:
            span_id, inside = event.span_id, self._inside
            if inside is None or span_id in inside.open or span_id in inside:
                self._recorder.begin(span_id)
        elif kind == _END:
            span_id = event.span_id
            if self._recorder.end(span_id):
                name = span_id.partition(".")[0]
                labels = self._labels.get(name) or self._labels_of(name)
                self._record(event, event.str_or_query_bundle, labels)
        elif kind == _DROP:
            self._recorder.end(event.span_id)
        elif (
            kind == _RERANK
            and self._reranks
            and (self._inside is None or event.span_id in self._inside)
        ):
            self._take_reranked(event)

    def _take_reranked(self, event: Any) -> None:  # noqa: ANN401
        """Record a list that was reranked outside retrievals; it has one event, and no run."""
        recorder, key = self._recorder, (id(self._recorder.observer), event.id_)
        with guarded(recorder.dropped, "result could not be read"):
            if key not in _reranked:
                _reranked[key] = event
                with recorder.retrieval() as first:
                    pass
                if first:
                    labels = recorder.labels_beside({"stage": "rerank"})
                    self._record(event, None, labels)

    def _labels_of(self, retriever: str) -> CheckedLabels:
        if len(self._labels) >= _MOST_KNOWN:
            self._labels.clear()
        return self._labels.setdefault(
            retriever, self._recorder.labels_beside({"retriever": retriever})
        )

    def _record(self, event: Any, query: Any, labels: CheckedLabels) -> None:  # noqa: ANN401
        recorder = self._recorder
        if event.tags:
            with guarded(recorder.dropped, "tags could not be read"):
                chosen = {key: event.tags.get(key) for key in self._label_tags}
                labels = recorder.labels_beside({**chosen, **labels})
        record_nodes(recorder, event.nodes, query=query, labels=labels)

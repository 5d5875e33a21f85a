"""Observe LlamaIndex through its dispatcher; try another retriever on live queries."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any
from weakref import WeakValueDictionary

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.instrumentation.events.span import SpanDropEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import PrivateAttr

from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.observe.events import MetadataTags, guarded, listed
from rag_sourcebias.observe.patching import Patch
from rag_sourcebias.observe.recorder import Attachment, Recorder
from rag_sourcebias.observe.shadow import Shadow, Shadowed
from rag_sourcebias_integrations._recording import recorded
from rag_sourcebias_integrations._require import require_kind

# LlamaIndex results as the core records them: ids, scores and tags of nodes.


def query_text(query: Any) -> str:  # noqa: ANN401 - a text, a QueryBundle or None
    """Text of a query in any of the forms in which LlamaIndex hands it around."""
    return query if isinstance(query, str) else getattr(query, "query_str", "")


def record_nodes(
    recorder: Recorder,
    nodes: Sequence[Any],
    *,
    query: Any,  # noqa: ANN401
    labels: Mapping[str, object],
    carried: Mapping[str, object] = {},
) -> None:
    """Record what a retriever returned; never raises.

    Parameters
    ----------
    recorder : Recorder
        Its ``doc_id`` is given the ``NodeWithScore``; without it the id is the node's.
    nodes : sequence of NodeWithScore
        Best first. Only read, now. Scores are recorded where every node has one.
    query : str or QueryBundle
    labels : mapping of str to str
    """
    with guarded(recorder.dropped, "result could not be read"):
        scores = [found.score for found in listed(nodes)]
        doc_id = recorder.doc_id or attrgetter("node.id_")
        recorder.record(
            map(doc_id, nodes),
            metadata=[found.node.metadata for found in nodes],
            scores=None if None in scores else scores,
            query=query_text(query),
            labels=labels,
            carried=carried,
        )


# The span handler for LlamaIndex's dispatcher, needed where one object is observed.


_REMEMBERED = 5_000  # to 10,000 ended spans: tasks that outlive a query have them as parents


class SourceBiasSpanHandler(BaseSpanHandler[BaseSpan]):
    """Follow the spans of one object and all spans inside them; keeps their ids only.

    Parameters
    ----------
    target : BaseRetriever or BaseQueryEngine or BaseIndex
        For an index its retrievers count, whoever made them.
    """

    _target: Any = PrivateAttr()
    _inside: set[str] = PrivateAttr(default_factory=set)
    _ended: set[str] = PrivateAttr(default_factory=set)
    _ended_before: set[str] = PrivateAttr(default_factory=set)

    def __init__(self, target: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._target = target

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasSpanHandler"

    def follows(self, span_id: str | None) -> bool:
        """Return whether a span lies inside the object."""
        return span_id in self._inside or span_id in self._ended or span_id in self._ended_before

    # LlamaIndex tells every argument by name. The base class would make and keep span objects.
    def span_enter(
        self,
        id_: str,
        bound_args: object = None,  # noqa: ARG002 - they hold the query
        instance: Any = None,  # noqa: ANN401
        parent_id: str | None = None,
        **_: object,
    ) -> None:
        """Note that a span began."""
        if self.follows(parent_id) or _belongs(instance, self._target):
            self._inside.add(id_)

    def span_exit(self, id_: str, *args: object, **kwargs: object) -> None:  # noqa: ARG002
        """Note that a span ended, or that its call raised."""
        if id_ in self._inside:
            self._ended.add(id_)  # first, so that it is never in neither
            self._inside.discard(id_)
            if len(self._ended) >= _REMEMBERED:
                self._ended_before = self._ended
                self._ended = set()

    span_drop = span_exit

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Make no span object."""

    prepare_to_exit_span = prepare_to_drop_span = new_span


def _belongs(instance: Any, target: Any) -> bool:  # noqa: ANN401
    """Whether a span of this instance is one of the target: itself, or what searches an index."""
    if not isinstance(target, BaseIndex):
        return instance is target
    if not isinstance(instance, BaseRetriever):
        return False
    if getattr(instance, "_index", None) is target:
        return True
    graph = getattr(target, "property_graph_store", None)  # its retrievers know the graph only
    parts = getattr(instance, "sub_retrievers", None) or (instance,)
    return graph is not None and any(getattr(part, "_graph_store", None) is graph for part in parts)


# The event handler for LlamaIndex's dispatcher.
# The dispatcher swallows every exception of a handler without a word, so this one counts its own
# failures (``Recorder.dropped``).


# What observers were told of, so that two handlers of one observer count it once. An event lives
# until all handlers have had it.
_reranked: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()


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
    """

    _recorder: Recorder = PrivateAttr()
    _spans: SourceBiasSpanHandler | None = PrivateAttr()
    _reranks: bool = PrivateAttr()

    def __init__(
        self,
        recorder: Recorder,
        *,
        spans: SourceBiasSpanHandler | None = None,
        reranks: bool = False,
    ) -> None:
        super().__init__()
        self._recorder = recorder
        self._spans = spans
        self._reranks = reranks

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasEventHandler"

    def handle(self, event: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Take one event, in constant time: it may come on an event loop."""
        recorder = self._recorder
        if isinstance(event, RetrievalStartEvent):
            if self._counts(event):
                recorder.begin(event.span_id)
        elif isinstance(event, RetrievalEndEvent):
            if recorder.end(event.span_id):
                retriever = event.span_id.partition(".")[0]
                self._record(event, event.str_or_query_bundle, {"retriever": retriever})
        elif isinstance(event, SpanDropEvent):
            recorder.end(event.span_id)
        elif isinstance(event, ReRankEndEvent) and self._reranks and self._counts(event):
            self._take_reranked(event)

    def _counts(self, event: Any) -> bool:  # noqa: ANN401
        return self._spans is None or self._spans.follows(event.span_id)

    def _take_reranked(self, event: Any) -> None:  # noqa: ANN401
        """Record a list that was reranked outside retrievals; it has one event, and no run."""
        key = (id(self._recorder.observer), event.id_)
        with guarded(self._recorder.dropped, "result could not be read"):
            if key not in _reranked:
                _reranked[key] = event
                with self._recorder.retrieval() as first:
                    pass
                if first:
                    self._record(event, None, {"stage": "rerank"})

    def _record(self, event: Any, query: Any, labels: Mapping[str, str]) -> None:  # noqa: ANN401
        recorder = self._recorder
        record_nodes(recorder, event.nodes, query=query, labels=labels, carried=event.tags)


# Vector stores that are asked directly: LlamaIndex announces only what retrievers do.


def _observed_query(name: str, method: Callable[..., Any], patch: Patch) -> Callable[..., Any]:  # noqa: ARG001
    return recorded(method, patch.observers_of, _record_stored)


def _record_stored(
    recorder: Recorder,
    store: Any,  # noqa: ANN401
    result: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Record a ``VectorStoreQueryResult``; stores that keep no texts return ids only."""
    query = args[0] if args else kwargs.get("query")
    nodes, ids, scores = result.nodes, result.ids, result.similarities
    labels = {"store": store.__class__.__name__}
    text = query_text(query)
    if nodes is None:
        recorder.record(listed(ids or ()), scores=scores or None, query=text, labels=labels)
        return
    of_node = scores if scores and len(scores) == len(nodes) else [None] * len(nodes)
    scored = [
        NodeWithScore.model_construct(node=node, score=score)
        for node, score in zip(nodes, of_node, strict=True)
    ]
    record_nodes(recorder, scored, query=text, labels=labels)


_stores = Patch(BasePydanticVectorStore, {"query", "aquery"}.__contains__, _observed_query)


# Instrument LlamaIndex through its dispatcher; of the application's objects none is touched.


_changing = threading.Lock()  # two handles that close at once would restore each other's handler


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe all retrievals of the process, or those inside a retriever, query engine or index.

    Parameters
    ----------
    obj : str or BaseRetriever or BaseQueryEngine or BaseIndex
        A name stands for the whole process, with vector stores that are asked directly (their
        ``query`` and ``aquery`` are replaced in their classes). Inside an object counts what it
        retrieves itself and what is retrieved on its behalf while it works.
    recorder : Recorder

    Returns
    -------
    Attachment or None
        None for any other object.
    """
    if not isinstance(obj, str | BaseRetriever | BaseQueryEngine | BaseIndex):
        return None
    # For a name without a span handler: events say when a retrieval failed, and every span costs.
    spans = None if isinstance(obj, str) else SourceBiasSpanHandler(obj)
    events = SourceBiasEventHandler(recorder, spans=spans)
    root = get_dispatcher()

    def detach() -> None:
        _stores.remove(recorder)
        with _changing:  # there is no method that removes a handler
            root.event_handlers = [item for item in root.event_handlers if item is not events]
            root.span_handlers = [item for item in root.span_handlers if item is not spans]

    if spans is None:
        _stores.add(recorder)
    with _changing:
        if spans is not None:
            root.add_span_handler(spans)
        root.add_event_handler(events)
    return Attachment(obj, detach)


# Try another retriever on live queries.


_RETRIEVER = "LlamaIndex retriever; expected one such as index.as_retriever()"


class ShadowedRetriever(Shadowed, BaseRetriever):
    """One retriever answers; a candidate is asked afterwards and compared with it.

    The application gets the very nodes of the current one, or its exception. The candidate is
    asked on a thread of its own, by its sync ``retrieve`` (an async client belongs to the
    application's event loop), without the context of the call, and not observed. It embeds the
    query itself. It never delays a query; when it is slower than the queries come, queries are
    dropped and counted, and so are its exceptions.

    Nodes are matched by id. Two indexes built from the same documents have other node ids: name
    the document, ``doc_id=lambda found: found.node.ref_doc_id``.

    Parameters
    ----------
    current, candidate : BaseRetriever
    depth : int
        Ranks compared; have both retrievers return as many.
    tag_store : TagStore, optional
        Where tags are looked up; what it does not know comes from the metadata.
    doc_id : callable, optional
        From a ``NodeWithScore`` to an id.
    capacity : int
        Queries that may wait for the candidate, at least 1.

    Raises
    ------
    DataError
        If one is no retriever, or a number is outside its range.

    Examples
    --------
    ::

        retriever = ShadowedRetriever(index.as_retriever(), debiased.as_retriever())
        engine = RetrieverQueryEngine.from_args(retriever)
        ...                       # serve from it as before
        print(retriever.comparison.summary())
        retriever.close()
    """

    def __init__(
        self,
        current: BaseRetriever,
        candidate: BaseRetriever,
        *,
        depth: int = 10,
        tag_store: TagStore | None = None,
        doc_id: Callable[[Any], Any] | None = None,
        capacity: int = 100,
    ) -> None:
        require_kind(current, BaseRetriever, _RETRIEVER)
        require_kind(candidate, BaseRetriever, _RETRIEVER)
        self.current = current
        self.candidate = candidate
        tags = MetadataTags()
        self._shadow = Shadow(
            lambda nodes: (
                [found.node.node_id if doc_id is None else str(doc_id(found)) for found in nodes],
                tags.read(found.node.metadata for found in nodes)[0],
            ),
            depth=depth,
            tag_store=tag_store,
            capacity=capacity,
        )
        super().__init__(callback_manager=getattr(current, "callback_manager", None))

    # LlamaIndex passes query_bundle by name: another name would fail, in the async path only.
    def _retrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        nodes: list[Any] = self.current.retrieve(query_bundle)
        self._answered(nodes, query_bundle)
        return nodes

    async def _aretrieve(self, query_bundle: Any) -> list[Any]:  # noqa: ANN401
        nodes: list[Any] = await self.current.aretrieve(query_bundle)
        self._answered(nodes, query_bundle)
        return nodes

    # The current retriever has followed its index nodes; again could be further.
    def _handle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    async def _ahandle_recursive_retrieval(self, query_bundle: Any, nodes: list[Any]) -> list[Any]:  # noqa: ANN401, ARG002
        return nodes

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"retriever": self.current, "shadow": self.candidate}

    def _answered(self, nodes: list[Any], query: Any) -> None:  # noqa: ANN401
        with guarded(self.comparison.dropped, "query could not be read"):
            strings = query.custom_embedding_strs
            # Without the vector that the current retriever has left in the query: it is its own.
            copied = QueryBundle(
                query.query_str,
                custom_embedding_strs=None if strings is None else list(strings),
                image_path=query.image_path,
            )
            self._shadow.answered(nodes, partial(self.candidate.retrieve, copied))

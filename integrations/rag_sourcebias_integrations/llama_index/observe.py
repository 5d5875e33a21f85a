"""Observe LlamaIndex through its dispatcher; try another retriever on live queries."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.indices.base import BaseIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.instrumentation.events.span import SpanDropEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from rag_sourcebias.core.protocols import Observer
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.observe.events import MetadataTags, RetrievalEvent, Stage, guarded, listed
from rag_sourcebias.observe.patching import Patch
from rag_sourcebias.observe.recorder import Attachment, Observing, Recorder
from rag_sourcebias.observe.shadow import Shadow, Shadowed
from rag_sourcebias_integrations._recording import recorded
from rag_sourcebias_integrations._require import require_kind

# LlamaIndex results as the core records them: ids, scores and tags of nodes.


def query_text(query: Any) -> str:  # noqa: ANN401 - a text, a QueryBundle or None
    """Text of a query in any of the forms in which LlamaIndex hands it around."""
    return query if isinstance(query, str) else getattr(query, "query_str", "")


def ids_of(recorder: Recorder, nodes: Sequence[Any]) -> tuple[str, ...]:
    """Return the ids of nodes as they are recorded: the user's, or else the nodes' own."""
    return tuple(map(recorder.doc_id or attrgetter("node.id_"), nodes))


def record_nodes(recorder: Recorder, nodes: Sequence[Any], **options: Any) -> str:  # noqa: ANN401
    """Record what a retriever returned, or what was left of it; never raises.

    Parameters
    ----------
    recorder : Recorder
        Its ``doc_id`` is given the ``NodeWithScore``; without it the id is the node's.
    nodes : sequence of NodeWithScore
        Best first. Only read, now. Scores are recorded where every node has one.
    **options
        As for :meth:`Recorder.record`.

    Returns
    -------
    str
        Name of the request.
    """
    with guarded(recorder.dropped, "result could not be read"):
        scores = [found.score for found in listed(nodes)]
        return recorder.record(
            ids_of(recorder, nodes),
            metadata=[found.node.metadata for found in nodes],
            scores=None if None in scores else scores,
            **options,
        )
    return ""


# What the dispatcher tells: events of retrievals, spans of all calls.


_ENDED = 5_000  # calls remembered after their end: tasks that outlive a query have them as parents
_REQUESTS = 100  # of one call: an agent that runs for days retrieves without end


@dataclass(slots=True, eq=False)
class _Call:
    """A call, the one it lies in, and the requests that were retrieved inside it."""

    around: _Call | None
    observed: bool
    is_engine: bool
    requests: list[str] = field(default_factory=list)


class SourceBiasEventHandler(Observing, BaseEventHandler, BaseSpanHandler[BaseSpan]):
    """Record what LlamaIndex retrieves, what rerankers make of it, and what readers are shown.

    LlamaIndex's callbacks do not see all of this, its dispatcher does. This object is added to it
    twice, for events and for spans; with the events alone, what is retrieved is recorded.
    ``instrument("llama-index", observer)`` does both, and observes vector stores that are asked
    directly.

    - "retrieved" is the list that the outermost retriever returned, once per question: retrievers
      inside fusion, router and other composite retrievers do not count.
    - "reranked" is what a node postprocessor left of it; each one replaces the one before.
    - "shown" is what the response synthesizer was given, or the ``source_nodes`` in the answer of
      an engine that has none.

    What happens in one call of a query or chat engine is one request. Where the application calls
    postprocessors itself, they are of the request that it retrieved last. What a postprocessor
    does in an ``async`` method of its own (``LLMRerank``) has no span: in an engine "shown" says
    what it left, elsewhere :func:`rag_sourcebias.shown` does.

    Labels are ``retriever`` (the class) and some of the application's ``instrument_tags``. The
    dispatcher swallows every exception of a handler without a word; those of this one are counted
    in :attr:`dropped`.

    Before llama-index-core 0.14.9, a composite retriever with ``use_async`` called by ``retrieve``
    inside a running event loop (a notebook) asks its parts on a thread without the context: there
    the parts count as well.

    Parameters
    ----------
    observer : Observer of RetrievalEvent, or Recorder
    only : BaseRetriever or BaseQueryEngine or BaseChatEngine or BaseIndex, optional
        Record what is retrieved by this, or on its behalf while it works; of an index, by its
        retrievers, whoever made them. Needs the spans.
    **options
        ``labels``, ``take_labels``, ``tags``, ``doc_id``, ``query_key`` and ``queue``, as for
        :func:`~rag_sourcebias.instrument`.

    Examples
    --------
    ::

        handler = SourceBiasEventHandler(observer)
        get_dispatcher().add_event_handler(handler)
        get_dispatcher().add_span_handler(handler)
    """

    def __init__(
        self,
        observer: Observer[RetrievalEvent] | Recorder,
        *,
        only: Any = None,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__()
        # Not declared as private attributes, which cost a microsecond each time they are read.
        self._recorder = (
            observer if isinstance(observer, Recorder) else Recorder(observer, **options)
        )
        self._only = only
        self._stopped = False
        self._calls: dict[str | None, _Call] = {}
        self._ended: deque[str] = deque()

    @classmethod
    def class_name(cls) -> str:
        """Name that LlamaIndex shows."""
        return "SourceBiasEventHandler"

    def handle(self, event: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        """Take one event, in constant time: it may come on an event loop."""
        recorder = self._recorder
        span_id = event.span_id
        if isinstance(event, RetrievalStartEvent):
            observed = getattr(self._calls.get(span_id), "observed", self._only is None)
            if observed and not self._stopped:
                recorder.begin(span_id)
        elif isinstance(event, SpanDropEvent):
            recorder.end(span_id)
        elif isinstance(event, RetrievalEndEvent) and recorder.end(span_id):
            request = record_nodes(
                recorder,
                event.nodes,
                query=query_text(event.str_or_query_bundle),
                labels={"retriever": span_id.partition(".")[0]},
                carried=event.tags,
            )
            call = self._calls.get(span_id) if request else None
            while call is not None:
                call.requests.append(request)
                del call.requests[:-_REQUESTS]
                call = call.around

    # LlamaIndex tells every argument by name. The base class would make and keep span objects.
    def span_enter(
        self,
        id_: str,
        bound_args: object = None,  # noqa: ARG002 - they hold the query
        instance: Any = None,  # noqa: ANN401
        parent_id: str | None = None,
        **_: object,
    ) -> None:
        """Note that a call began."""
        around = self._calls.get(parent_id)
        observed = _belongs(instance, self._only) or getattr(around, "observed", False)
        self._calls[id_] = _Call(around, observed, isinstance(instance, _ENGINES))

    def span_exit(
        self,
        id_: str,
        bound_args: Any = None,  # noqa: ANN401
        instance: object = None,  # noqa: ARG002
        result: Any = None,  # noqa: ANN401
        **_: object,
    ) -> None:
        """Note that a call returned; record what a postprocessor left, and what is shown."""
        call = self._calls.get(id_)
        with guarded(self.dropped, "result could not be read"):
            if "postprocess_nodes-" in id_:
                self._take("reranked", next(iter(bound_args.arguments.values())), result, call)
            elif "synthesize-" in id_:
                nodes = bound_args.arguments["nodes"]
                self._take("shown", nodes, nodes, call)
            elif call is not None and call.is_engine:
                nodes = getattr(result, "source_nodes", None)
                if nodes:
                    self._take("shown", nodes, nodes, call)
        self.span_drop(id_)

    def span_drop(self, id_: str, *args: object, **kwargs: object) -> None:  # noqa: ARG002
        """Note that a call ended, or raised."""
        call = self._calls.get(id_)
        if call is not None:
            call.around = None  # the next run of an agent is told to lie inside the one before
            self._ended.append(id_)
            if len(self._ended) > _ENDED:
                self._calls.pop(self._ended.popleft(), None)

    def new_span(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Make no span object."""

    prepare_to_exit_span = prepare_to_drop_span = new_span

    def _take(self, stage: Stage, given: Any, left: Any, call: _Call | None) -> None:  # noqa: ANN401
        """Record what is left of documents, in each request that they were given from."""
        recorder = self._recorder
        with recorder.retrieval() as first:
            if not first or self._stopped:  # inside a retriever, what that returns is what counts
                return
        found = self._given_from(set(ids_of(recorder, listed(given))), call)
        for earlier in found:
            of_it = [
                node
                for node, name in zip(left, ids_of(recorder, listed(left)), strict=True)
                if len(found) == 1 or name in earlier.ranked.doc_ids
            ]
            record_nodes(recorder, of_it, stage=stage, request=earlier.request)

    def _given_from(self, given: set[str], call: _Call | None) -> list[RetrievalEvent]:
        """Return the latest stage of each request that documents were given from.

        Of those that the innermost call around retrieved and that nothing was shown of yet: the
        last one with all of the documents, or else each with some, or else the last one.
        """
        before = self._recorder.requests.before
        while call is not None:
            latest = map(partial(before, ()), reversed(call.requests))
            waiting = [one for one in latest if one is not None and one.stage != "shown"]
            if waiting:
                whole = [one for one in waiting if given.issubset(one.ranked.doc_ids)]
                some = [one for one in waiting if not given.isdisjoint(one.ranked.doc_ids)]
                return whole[:1] or some or waiting[:1]
            if call.is_engine:  # whose answer rests on answers that were shown
                return []
            call = call.around
        found = before(tuple(given))
        if found is None or (self._only is not None and not given.issubset(found.ranked.doc_ids)):
            return []
        return [found]


_ENGINES = (BaseQueryEngine, BaseChatEngine)


def _belongs(instance: Any, target: Any) -> bool:  # noqa: ANN401
    """Whether a call of this instance is one of the target: itself, or what searches an index."""
    if target is None or instance is target:
        return True
    if not (isinstance(target, BaseIndex) and isinstance(instance, BaseRetriever)):
        return False
    searched = getattr(target, "property_graph_store", target)  # all that a graph's retrievers know
    parts = (instance, *(getattr(instance, "sub_retrievers", None) or ()))
    held = (getattr(part, name, None) for part in parts for name in ("_index", "_graph_store"))
    return any(one is searched for one in held)


# Vector stores that are asked directly: LlamaIndex announces only what retrievers do.


def _record_stored(
    recorder: Recorder,
    store: Any,  # noqa: ANN401
    result: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Record a ``VectorStoreQueryResult``; stores that keep no texts return ids only."""
    nodes, scores = result.nodes, result.similarities
    if nodes is None:
        nodes = [TextNode(id_=name) for name in listed(result.ids or ())]
    if not scores or len(scores) != len(nodes):
        scores = [None] * len(nodes)
    pairs = zip(nodes, scores, strict=True)
    record_nodes(
        recorder,
        [NodeWithScore.model_construct(node=node, score=score) for node, score in pairs],
        query=query_text(args[0] if args else kwargs.get("query")),
        labels={"store": store.__class__.__name__},
    )


_stores = Patch(
    BasePydanticVectorStore,
    {"query", "aquery"}.__contains__,
    lambda _, method, patch: recorded(method, patch.observers_of, _record_stored),
)


# Instrument LlamaIndex through its dispatcher; of the application's objects none is touched.


_changing = threading.Lock()  # two handles that close at once would restore each other's handler


def attach(obj: object, recorder: Recorder) -> Attachment | None:
    """Observe all retrievals of the process, or those inside a retriever, engine or index.

    Parameters
    ----------
    obj : str or BaseRetriever or BaseQueryEngine or BaseChatEngine or BaseIndex
        A name stands for the whole process, with vector stores that are asked directly (their
        ``query`` and ``aquery`` are replaced in their classes).
    recorder : Recorder

    Returns
    -------
    Attachment or None
        None for any other object.
    """
    if not isinstance(obj, (str, BaseRetriever, BaseIndex, *_ENGINES)):
        return None
    only = None if isinstance(obj, str) else obj
    handler = SourceBiasEventHandler(recorder, only=only)
    root = get_dispatcher()

    def detach() -> None:
        _stores.remove(recorder)
        with _changing:  # there is no method that removes a handler
            root.event_handlers = [one for one in root.event_handlers if one is not handler]
            root.span_handlers = [one for one in root.span_handlers if one is not handler]

    if only is None:
        _stores.add(recorder)
    with _changing:
        root.add_span_handler(handler)
        root.add_event_handler(handler)
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
            # Without the vector that the current retriever has left in the query: it is its own.
            copied = replace(query, embedding=None)
            self._shadow.answered(nodes, partial(self.candidate.retrieve, copied))

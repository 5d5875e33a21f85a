"""What reaches readers of LlamaIndex: a reranker's list, the response's nodes, one request each."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import CompletionResponse, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.retrievers import (
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
)
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation.dispatcher import instrument_tags

import rag_sourcebias as rsb
from rag_sourcebias import ExposureObserver
from rag_sourcebias.observe.events import RetrievalEvent, hash_query
from rag_sourcebias.observe.observers import CollectingObserver, CountingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias_integrations.llama_index.observe import SourceBiasEventHandler

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # agents and workflows give them
]

NODES = [
    TextNode(id_=f"n{i}", metadata={"key": f"k{i}", "rsb_source": ("human", "llm:x")[i % 2]})
    for i in range(40)
]
QUESTIONS = [f"question {i}" for i in range(12)]


class Drawn(BaseRetriever):
    """Draws ten nodes by the question, with falling scores."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.query_str == "fail":
            raise LookupError("no such index")
        nodes = random.Random(query_bundle.query_str).sample(NODES, 10)
        return [NodeWithScore(node=n, score=1 - i / 10) for i, n in enumerate(nodes)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(0)
        return self._retrieve(query_bundle)


def is_human(node: Any) -> bool:
    return node.node.metadata["rsb_source"] == "human"


class Favouring(BaseNodePostprocessor):
    """Keeps the best five, and begins to favour the texts of a model; emits no event."""

    pull: float = 0.3

    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        if query_bundle is not None and query_bundle.query_str == "break":
            raise LookupError("no such model")
        ranked = sorted(nodes, key=lambda n: is_human(n) * self.pull - n.score)
        return [NodeWithScore(node=n.node, score=n.score) for n in ranked[:5]]


class Nothing(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
        return []


def engine(*postprocessors: BaseNodePostprocessor, **options: Any) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(
        Drawn(), llm=MockLLM(), node_postprocessors=list(postprocessors), **options
    )


def synthesizer(**options: Any) -> BaseSynthesizer:
    return get_response_synthesizer(llm=MockLLM(), **options)


class NoPrompts:
    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass


class Chosen(NoPrompts, BaseSelector):
    def _select(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=0, reason="")])

    async def _aselect(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


class Halves(NoPrompts, BaseQuestionGenerator):
    """Two questions of one."""

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(sub_question=f"{query.query_str} {part}", tool_name="docs")
            for part in ("first", "second")
        ]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)


def tool(of: BaseQueryEngine) -> QueryEngineTool:
    return QueryEngineTool(query_engine=of, metadata=ToolMetadata(name="docs", description="all"))


class ByHand(CustomQueryEngine):
    """An engine of the application's own: no synthesizer, nodes in its answer."""

    def custom_query(self, query_str: str) -> Response:
        nodes = Favouring().postprocess_nodes(Drawn().retrieve(query_str))
        return Response("yes", source_nodes=nodes[:3])


class Louder(NoPrompts, BaseQueryTransform):
    def _run(self, query_bundle: QueryBundle, metadata: Any) -> QueryBundle:
        return QueryBundle(query_bundle.query_str + "!")


class TwoRetrievals(CustomQueryEngine):
    """Retrieves twice and shows the best of both in one answer."""

    def custom_query(self, query_str: str) -> Any:
        nodes = [*Drawn().retrieve(query_str), *Drawn().retrieve(query_str + " again")]
        distinct = list({n.node_id: n for n in reversed(nodes)}.values())
        return synthesizer().synthesize(query_str, Favouring().postprocess_nodes(distinct))


def retrieve_and_rerank(question: str) -> Any:
    nodes = Drawn().retrieve(question)
    return Response("", source_nodes=Favouring().postprocess_nodes(nodes, query_str=question))


async def in_tasks(question: str) -> Any:
    """Each step in a task of its own, as in a graph."""
    nodes = await asyncio.create_task(Drawn().aretrieve(question))
    nodes = await asyncio.create_task(Favouring().apostprocess_nodes(nodes, query_str=question))
    return Response("", source_nodes=nodes)


class Step(Event):
    question: str
    nodes: list[Any]


class Graph(Workflow):
    """A flow of the application's own, whose steps run in tasks of their own."""

    @step
    async def retrieve(self, event: StartEvent) -> Step:
        return Step(question=event.question, nodes=await Drawn().aretrieve(event.question))

    @step
    async def answer(self, event: Step) -> StopEvent:
        nodes = await Favouring().apostprocess_nodes(event.nodes)
        return StopEvent(result=await synthesizer().asynthesize(event.question, nodes[:3]))


def sub_questions(use_async: bool) -> SubQuestionQueryEngine:
    return SubQuestionQueryEngine.from_defaults(
        query_engine_tools=[tool(engine(Favouring()))],
        question_gen=Halves(),
        llm=MockLLM(),
        response_synthesizer=synthesizer(),
        use_async=use_async,
    )


async def gathered(ask: Callable[[str], Any]) -> list[Any]:
    return await asyncio.gather(*map(ask, QUESTIONS))


def each(ask: Callable[[str], Any]) -> Callable[[], list[Any]]:
    return lambda: [ask(question) for question in QUESTIONS]


def all_at_once(ask: Callable[[str], Any]) -> Callable[[], list[Any]]:
    return lambda: asyncio.run(gathered(ask))


CUT = SimilarityPostprocessor(similarity_cutoff=0.35)


def chat(kind: Any) -> Any:
    return kind.from_defaults(
        retriever=Drawn(),
        llm=MockLLM(),
        memory=ChatMemoryBuffer.from_defaults(token_limit=1000),
        node_postprocessors=[Favouring()],
    )


ROUTER = RouterQueryEngine(Chosen(), [tool(engine(Favouring()))], llm=MockLLM())
SHAPES: dict[str, Callable[[], list[Any]]] = {
    "custom": each(engine(Favouring()).query),
    "cutoff": each(engine(CUT).query),
    "two": each(engine(CUT, Favouring()).query),
    "streaming": each(engine(Favouring(), streaming=True).query),
    "async": all_at_once(engine(Favouring()).aquery),
    "chat": each(lambda q: chat(ContextChatEngine).chat(q)),
    "condensing chat": each(lambda q: chat(CondensePlusContextChatEngine).chat(q)),
    "async chat": all_at_once(lambda q: chat(ContextChatEngine).achat(q)),
    "router": each(ROUTER.query),
    "transform": each(TransformQueryEngine(engine(Favouring()), Louder()).query),
    "own engine": each(ByHand().query),
    "workflow": all_at_once(lambda q: Graph().run(question=q)),
    "by hand": each(retrieve_and_rerank),
    "by hand in tasks": all_at_once(in_tasks),
}


def latest(observer: CollectingObserver) -> dict[str, RetrievalEvent]:
    return {event.request: event for event in observer.events}


def questions_of(observer: CollectingObserver) -> int:
    return sum(event.stage == "retrieved" for event in observer.events)


def human_share(sources: Sequence[Sequence[bool]]) -> float:
    return sum(map(sum, sources)) / sum(map(len, sources))


def recorded_share(events: Any) -> float:
    return human_share([[tag.source == "human" for tag in event.tags] for event in events])


def true_share(answers: Sequence[Any]) -> float:
    return human_share([[is_human(node) for node in answer.source_nodes] for answer in answers])


@pytest.mark.parametrize("name", SHAPES)
def test_the_latest_stage_is_what_readers_get(name: str) -> None:
    observer, exposure = CollectingObserver(), ExposureObserver()
    with instrument("llama-index", observer) as handle, instrument("llama-index", exposure):
        answers = SHAPES[name]()
        assert handle.flush(10)
        assert handle.dropped.total == 0
    found = latest(observer)
    assert len(found) == questions_of(observer) == exposure.counts().n_retrievals == 12
    assert sorted(event.ranked.doc_ids for event in found.values()) == sorted(
        tuple(node.node_id for node in answer.source_nodes) for answer in answers
    )
    assert recorded_share(found.values()) == pytest.approx(true_share(answers), abs=1e-12)
    retrieved = [e for e in observer.events if e.stage == "retrieved"]
    assert abs(recorded_share(retrieved) - true_share(answers)) > 0.01  # the control


@pytest.mark.parametrize("use_async", [False, True])
def test_sub_questions_are_requests_of_their_own(use_async: bool) -> None:
    observer = CollectingObserver()
    with instrument("llama-index", observer) as handle:
        answers = each(sub_questions(use_async).query)()
        assert handle.flush(10)
        assert handle.dropped.total == 0
    found = latest(observer)
    assert len(found) == questions_of(observer) == 24
    # the engine's own list begins with its answers to the two questions, which nobody retrieved
    sources = [node for a in answers for node in a.source_nodes if "rsb_source" in node.metadata]
    assert len(sources) == 12 * 10
    assert recorded_share(found.values()) == pytest.approx(
        human_share([list(map(is_human, sources))]), abs=1e-12
    )


def test_what_two_retrievals_share_an_answer_for_is_shown_of_each() -> None:
    observer = CollectingObserver()
    with instrument("llama-index", observer):
        shown = [node.node_id for node in TwoRetrievals().query("question").source_nodes]
    found = latest(observer)
    assert (len(found), {event.stage for event in found.values()}) == (2, {"shown"})
    first, second = [e.ranked.doc_ids for e in observer.events if e.stage == "retrieved"]
    one, two = [event.ranked.doc_ids for event in found.values()]
    assert list(one) == [name for name in shown if name in first]
    assert list(two) == [name for name in shown if name in second]


class Pooled(BaseRetriever):
    """Asks two others in a thread pool of its own, which copies no context."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda r: r._retrieve(query_bundle), (Drawn(), Drawn())))
        return found[0]


class Pointing(BaseRetriever):
    """Finds what points to another retriever."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        pointer = IndexNode(text="", index_id="inner", obj=engine(Favouring()))
        return [NodeWithScore(node=pointer, score=1.0)]


class Scripted(MockLLM):
    """Calls the tool twice, then answers."""

    steps: int = 0

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        self.steps += 1
        text = "Thought: I can answer.\nAnswer: yes"
        if self.steps % 3:
            call = {"input": f"question {self.steps}"}
            text = f"Thought: I search.\nAction: docs\nAction Input: {json.dumps(call)}"
        yield CompletionResponse(text=text, delta=text)


def ask_an_agent() -> None:
    async def main() -> None:
        agent = ReActAgent(tools=[tool(engine(Favouring()))], llm=Scripted(), streaming=True)
        await agent.run("question")

    asyncio.run(main())


def fusion(**options: Any) -> QueryFusionRetriever:
    return QueryFusionRetriever([Drawn(), Drawn()], llm=MockLLM(), num_queries=1, **options)


def asked(retriever: BaseRetriever) -> Callable[[], Any]:
    return lambda: RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=[Favouring()]
    ).query("question")


def ask_in_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(engine(Favouring()).query, QUESTIONS))


ROUTED = RouterRetriever(
    Chosen(), [RetrieverTool(Drawn(), ToolMetadata(name="docs", description="all"))], llm=MockLLM()
)
DESIGNS: dict[str, tuple[Callable[[], Any], int]] = {
    "fusion": (asked(fusion(use_async=False)), 1),
    "fusion in tasks": (asked(fusion(use_async=True)), 1),
    "router": (asked(ROUTED), 1),
    "recursive": (asked(RecursiveRetriever("r", {"r": Drawn()})), 1),
    "pointers": (lambda: Pointing().retrieve("question"), 1),
    "pool": (asked(Pooled()), 1),
    "agent that calls twice": (ask_an_agent, 2),
    "sub-questions": (lambda: sub_questions(False).query("question"), 2),
    "batch in threads": (ask_in_threads, 12),
    "batch in tasks": (SHAPES["async"], 12),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_one_retrieval_a_question_and_all_of_it_one_request(name: str) -> None:
    ask, n = DESIGNS[name]
    observer, exposure = CollectingObserver(), ExposureObserver()
    with instrument("llama-index", observer) as handle, instrument("llama-index", exposure):
        ask()
        assert handle.flush(10)
        assert handle.dropped.total == 0
    assert (questions_of(observer), exposure.counts().n_retrievals) == (n, n)
    stage = "retrieved" if name == "pointers" else "shown"
    assert [event.stage for event in latest(observer).values()] == [stage] * n


def stages(observer: CollectingObserver) -> list[tuple[str, int]]:
    return [(event.stage, len(event.ranked)) for event in observer.events]


def test_every_postprocessor_replaces_the_one_before_and_one_may_leave_nothing() -> None:
    observer, counts = CollectingObserver(), CountingObserver()
    with instrument("llama-index", observer), instrument("llama-index", counts) as handle:
        engine(CUT, Favouring()).query("x")
        engine(CUT, CUT).query("x")
        assert engine(Favouring(), Nothing()).query("x").source_nodes == []
        asyncio.run(engine(Nothing(), streaming=True).aquery("x"))
    assert stages(observer) == [
        *[("retrieved", 10), ("reranked", 7), ("reranked", 5), ("shown", 5)],
        *[("retrieved", 10), ("reranked", 7), ("shown", 7)],
        *[("retrieved", 10), ("reranked", 5), ("reranked", 0), ("shown", 0)],
        *[("retrieved", 10), ("reranked", 0), ("shown", 0)],
    ]
    assert (counts.n_events, counts.n_documents, counts.n_empty) == (4, 12, 2)
    assert handle.coverage.retrievals == 4


def test_an_error_in_the_middle_leaves_what_was_recorded() -> None:
    class Mute(MockLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Any:
            raise ConnectionError("no such model")

    observer = CollectingObserver()
    broken = RetrieverQueryEngine.from_args(Drawn(), llm=Mute(), node_postprocessors=[Favouring()])
    with instrument("llama-index", observer) as handle:
        for ask, error in (
            (lambda: engine(CUT).query("fail"), LookupError),
            (lambda: engine(CUT, Favouring()).query("break"), LookupError),
            (lambda: broken.query("x"), ConnectionError),
        ):
            with pytest.raises(error):
                ask()
        engine().query("x")
    assert stages(observer) == [
        *[("retrieved", 10), ("reranked", 7)],
        *[("retrieved", 10), ("reranked", 5)],
        *[("retrieved", 10), ("shown", 10)],
    ]
    assert handle.dropped.total == 0


def test_stages_of_one_chat_engine_alone() -> None:
    observer = CollectingObserver()
    mine, other = chat(ContextChatEngine), chat(ContextChatEngine)
    with instrument(mine, observer):
        mine.chat("x")
        other.chat("x")
    assert stages(observer) == [("retrieved", 10), ("reranked", 5), ("shown", 5)]
    earlier = observer.events[-1].earlier
    assert earlier is not None
    assert (earlier.stage, earlier.earlier) == ("reranked", None)  # no chain is kept


@pytest.mark.parametrize("what", ["engine", "retriever"])
def test_stages_of_one_object_alone(what: str) -> None:
    observer = CollectingObserver()
    mine, other = engine(Favouring()), engine(Favouring())
    with instrument(mine if what == "engine" else mine.retriever, observer) as handle:
        mine.query("x")
        other.query("x")
        asyncio.run(mine.aquery("x"))
        Favouring().postprocess_nodes(other.retriever.retrieve("y"))
    expected = [("retrieved", 10), ("reranked", 5), ("shown", 5)] * 2
    assert stages(observer) == expected
    assert handle.dropped.total == 0


def test_a_postprocessor_inside_a_retriever_changes_what_that_returns_only() -> None:
    class Reranking(Drawn):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return engine(Favouring()).query(query_bundle).source_nodes

    observer = CollectingObserver()
    with instrument("llama-index", observer):
        RetrieverQueryEngine.from_args(Reranking(), llm=MockLLM()).query("x")
    assert stages(observer) == [("retrieved", 5), ("shown", 5)]


def test_what_the_application_shows_itself() -> None:
    """Also under ids of its own."""
    observer, own = CollectingObserver(), CollectingObserver()
    with (
        instrument("llama-index", observer),
        instrument("llama-index", own, doc_id=lambda found: f"own {found.node_id}"),
    ):
        nodes = rsb.shown(Drawn().retrieve("x")[:3])
    for one, prefix in ((observer, ""), (own, "own ")):
        assert stages(one) == [("retrieved", 10), ("shown", 3)]
        assert list(one.events[-1].ranked.doc_ids) == [prefix + n.node_id for n in nodes]


def test_a_handler_takes_what_instrument_takes() -> None:
    observer = CollectingObserver()
    mine = engine(Favouring())
    handlers = [
        SourceBiasEventHandler(
            observer,
            only=mine,
            labels={"route": "a"},
            take_labels=["user"],
            tags={f"k{i}": "human" for i in range(40)},
            query_key=b"k" * 16,
            doc_id="node.metadata.key",
        )
        for _ in range(2)  # registered twice, it counts once
    ]
    root = get_dispatcher()
    before = list(root.event_handlers), list(root.span_handlers)
    for handler in handlers:
        root.add_event_handler(handler)
        root.add_span_handler(handler)
    try:
        with instrument_tags({"user": "u1", "tenant": "t"}):
            mine.query("x")
        engine().query("x")
        for handler in handlers:
            handler.close()
        mine.query("x")
    finally:
        root.event_handlers, root.span_handlers = before
    assert stages(observer) == [("retrieved", 10), ("reranked", 5), ("shown", 5)]
    for event in observer.events:
        assert event.labels == {"route": "a", "user": "u1", "retriever": "Drawn"}
        assert event.query_hash == hash_query("x", key=b"k" * 16)
        assert {tag.source for tag in event.tags} == {"human"}
    assert handlers[0].coverage.tagged == 1
    assert handlers[0].dropped.total == 0

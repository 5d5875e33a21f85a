"""Wrapper, embedding, postprocessor and evaluator for LlamaIndex, and retrievers of any store."""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Iterator, Sequence
from importlib import reload
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

pytest.importorskip("llama_index.core")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.evaluation import (
    BaseEvaluator,
    BatchEvalRunner,
    EvaluationResult,
    SemanticSimilarityEvaluator,
)
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.core.protocols import Rescorer
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.observe.tags import MemoryTagStore
from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor, EncoderEmbedding
from rag_sourcebias_integrations.llama_index.evaluation import IntervalEvaluator, IntervalResult

pytestmark = pytest.mark.frameworks

TEXTS = [f"word{i} word{i + 1} river" for i in range(8)]


@pytest.fixture
def own_loop() -> Iterator[None]:
    """LlamaIndex's sync methods take the thread's event loop, and would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


class Fixed(BaseRetriever):
    def __init__(self, *found: NodeWithScore) -> None:
        super().__init__()
        self.found = list(found)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.query_str == "fail":
            raise LookupError("no such index")
        return self.found


def scored(*names: str) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=n, text=f"text of {n}"), score=1 - i / 10)
        for i, n in enumerate(names)
    ]


# The wrapper


# The embedding


def test_texts_are_embedded_in_batches_and_queries_on_their_own_side() -> None:
    encoder = HashingEncoder()
    embedding = EncoderEmbedding(encoder, embed_batch_size=3)
    rows = embedding.get_text_embedding_batch(TEXTS)
    assert [len(call) for call in encoder.calls] == [3, 3, 2]
    assert isinstance(rows[0][0], float)
    np.testing.assert_array_equal(rows, HashingEncoder().encode_documents(TEXTS))
    assert embedding.get_agg_embedding_from_queries(TEXTS[:2])
    assert EncoderEmbedding(encoder).embed_batch_size == 64
    assert embedding.model_name == "hashing"


def test_the_embedding_pickles_with_its_encoder() -> None:
    embedding = EncoderEmbedding(HashingEncoder(8), embed_batch_size=5)
    copy = pickle.loads(pickle.dumps(embedding))
    assert copy.to_dict() == embedding.to_dict()
    assert copy.get_text_embedding("a river") == embedding.get_text_embedding("a river")
    broken = HashingEncoder()
    broken.hook = lambda: None  # type: ignore[attr-defined]
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(EncoderEmbedding(broken))


# The postprocessor


class Seen(BaseEventHandler):
    names: list[str] = Field(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        if type(event).__name__.startswith("ReRank"):
            self.names.append(type(event).__name__)


def humans_first(
    query: str,
    *,
    doc_ids: Sequence[str],
    texts: Sequence[str],
    tags: Sequence[DocTags],
    scores: Sequence[float] | None,
) -> list[float]:
    assert query == "x"
    assert texts[0] == f"text of {doc_ids[0]}"
    assert scores is not None
    return [s + (t.source == "human") for s, t in zip(scores, tags, strict=True)]


def test_a_rescorer_reorders_new_objects_around_the_same_nodes() -> None:
    assert isinstance(humans_first, Rescorer)
    nodes = scored("a", "b", "c")
    nodes[2].node.metadata["rsb_source"] = "human"
    store = MemoryTagStore()
    store.put([("b", DocTags(source="human"))])
    before = [found.model_dump() for found in nodes]
    root, seen = get_dispatcher(), Seen()
    root.add_event_handler(seen)
    post = DebiasPostprocessor(humans_first, tag_store=store, top_n=2)
    try:
        found = post.postprocess_nodes(nodes, query_str="x")
        again = asyncio.run(post.apostprocess_nodes(nodes, query_bundle=QueryBundle("x")))
    finally:
        root.event_handlers = [h for h in root.event_handlers if h is not seen]
    assert [n.node_id for n in found] == [n.node_id for n in again] == ["b", "c"]
    assert found[0].node is nodes[1].node
    assert found[0].score == pytest.approx(1.9)
    assert [n.model_dump() for n in nodes] == before
    assert seen.names == ["ReRankStartEvent", "ReRankEndEvent"] * 2


# The evaluator


class Length(BaseEvaluator):
    """Scores the length of the response; some responses get no score."""

    async def aevaluate(
        self, query: Any = None, response: Any = None, contexts: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        await asyncio.sleep(0.02 if query == "q0" else 0)
        if response == "fail":
            raise TimeoutError
        if response == "invalid":
            return EvaluationResult(invalid_result=True, invalid_reason="no number", score=0.0)
        return EvaluationResult(query=query, score=float(len(response)), feedback=str(kwargs))

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: Any) -> None:
        pass


def test_results_pass_through_and_scores_are_kept(own_loop: None) -> None:
    evaluator = IntervalEvaluator(Length())
    bare = Length().evaluate(query="q", response="four", reference="r")
    assert evaluator.evaluate(query="q", response="four", reference="r") == bare
    assert asyncio.run(evaluator.aevaluate(query="p", response="on", item_id="7")).score == 2
    with pytest.raises(TimeoutError):
        evaluator.evaluate(query="r", response="fail")
    assert evaluator.scores[:2] == [("q", 4.0), ("7", 2.0)]
    assert np.isnan(evaluator.scores[2][1])
    evaluator.evaluate(query="q", response="four")
    assert len(evaluator.scores) == 3
    evaluator.reset()
    assert evaluator.scores == []


@pytest.mark.filterwarnings("ignore:asyncio_module\\(\\) is deprecated:DeprecationWarning")
def test_the_interval_is_that_of_the_mean_over_human_scores() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 60, 80)
    human = lengths / 10 + rng.normal(size=80)
    evaluator = IntervalEvaluator(Length())
    queries = [f"q{i}" for i in range(80)]
    found = asyncio.run(
        BatchEvalRunner({"length": evaluator}, workers=8).aevaluate_response_strs(
            queries=queries, response_strs=["x" * int(n) for n in lengths]
        )
    )
    assert [result.score for result in found["length"]] == lengths.tolist()
    assert [name for name, _ in evaluator.scores] == queries  # although the first ends last
    expected = mean_interval(human[:30], lengths[:30], lengths[30:])
    by_id = dict(zip(queries[:30], human, strict=False))
    assert evaluator.interval(by_id) == expected
    assert evaluator.interval([*human[:30], *[None] * 50]) == expected
    result = evaluator.result(by_id, confidence_level=0.9)
    assert isinstance(result, IntervalResult)
    assert isinstance(result, EvaluationResult)
    assert (result.score, result.feedback) == (result.interval.estimate, str(result.interval))
    assert result.interval.confidence_level == 0.9


def test_items_without_a_score_are_left_out_and_said() -> None:
    evaluator = IntervalEvaluator(Length())

    async def judge() -> None:
        for i in range(40):
            response = "invalid" if i in (3, 30) else "x" * (1 + i % 7)
            await evaluator.aevaluate(query=f"q{i}", response=response)

    asyncio.run(judge())
    found = evaluator.interval([float(1 + i % 7) if i < 20 else None for i in range(40)])
    assert (found.n_labeled, found.n_unlabeled) == (19, 19)
    assert str(found.notes[-1]).startswith("2 of 40 items got no score")
    assert "1 of them with a human score" in str(found.notes[-1])
    with pytest.raises(InsufficientDataError):
        evaluator.interval({"q1": 2.0})
    with pytest.raises(DataError, match="'unasked'"):
        evaluator.interval({"unasked": 1.0})
    with pytest.raises(DataError, match="3 human scores for 40 evaluated items"):
        evaluator.interval([1.0, 2.0, 3.0])
    asyncio.run(evaluator.aevaluate(query="q1", response="another"))
    with pytest.raises(DataError, match="'q1' was evaluated with several responses"):
        evaluator.interval({"q1": 1.0})


def test_the_evaluator_wraps_evaluators_of_llama_index(own_loop: None) -> None:
    inner = SemanticSimilarityEvaluator(embed_model=EncoderEmbedding(HashingEncoder()))
    result = IntervalEvaluator(inner).evaluate(response="a river", reference="a river")
    assert result.score == pytest.approx(1.0)
    with pytest.raises(DataError, match="type function is no LlamaIndex evaluator"):
        IntervalEvaluator(scored)


# Any store


# The framework


@pytest.mark.parametrize("missing", ["llama_index", "llama_index.core"])
def test_a_missing_framework_names_the_extra(monkeypatch: Any, missing: str) -> None:
    from rag_sourcebias_integrations.llama_index import _framework

    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"llama-index-core.*\[llama-index\]"):
        reload(_framework)

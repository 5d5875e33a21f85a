"""Our encoders as LlamaIndex embeddings, and intervals over its evaluators."""

import asyncio
import pickle
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

pytest.importorskip("llama_index.core")

from llama_index.core.evaluation import (
    BaseEvaluator,
    BatchEvalRunner,
    EvaluationResult,
    SemanticSimilarityEvaluator,
)

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding
from rag_sourcebias_integrations.llama_index.evaluation import IntervalEvaluator

pytestmark = pytest.mark.frameworks

TEXTS = [f"word{i} word{i + 1} river" for i in range(8)]


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
    with pytest.raises(DataError, match="type str is no LlamaIndex evaluator"):
        IntervalEvaluator("judge")

"""Our encoders and adjusted metrics inside the real ragas, and what its import says."""

import asyncio
import os
import re
import sys
import threading
import time
from dataclasses import replace
from importlib import reload
from typing import Any

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from judged_answers import judged_answers

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")

from ragas import EvaluationDataset, aevaluate, evaluate
from ragas.dataset_schema import SingleTurnSample
from ragas.metrics import collections
from ragas.metrics._answer_similarity import SemanticSimilarity
from ragas.metrics.base import Metric, SimpleBaseMetric
from ragas_judges import FixedModernLLM

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias_integrations.ragas import _framework
from rag_sourcebias_integrations.ragas.metrics import (
    EncoderEmbedding,
    StyleAdjustedAnswerCorrectness,
    StyleAdjustedSimilarity,
)

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:a?evaluate\\(\\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*uuid.json:ResourceWarning"),  # of ragas
]


class SlowEncoder(HashingEncoder):
    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()
        self.error: Exception | None = None

    def encode_documents(self, texts: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        time.sleep(self.seconds)
        assert self.may_go.wait(20)
        if self.error is not None:
            raise self.error
        return super().encode_documents(texts)


def test_concurrent_texts_come_in_order_and_unaltered() -> None:
    encoder = SlowEncoder(0.001)
    embeddings = EncoderEmbedding(encoder)
    texts = [f"name{i} \n River  é{i}" for i in range(20)]

    async def each() -> list[Any]:
        return await asyncio.gather(*(embeddings.aembed_text(text) for text in texts))

    found = asyncio.run(each())
    assert sorted(encoder.calls) == sorted([text] for text in texts)
    assert found == HashingEncoder().encode_documents(texts).tolist()
    assert embeddings.embed_texts(texts) == found
    assert threading.main_thread().name in encoder.threads  # the sync call, and only that


def test_the_event_loop_runs_while_the_encoder_works() -> None:
    embeddings = EncoderEmbedding(SlowEncoder(0.3))

    async def ticks() -> int:
        task = asyncio.create_task(embeddings.aembed_texts(["a river", "a name"]))
        count = 0
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(ticks()) >= 5


def test_an_error_of_the_encoder_reaches_every_caller_and_no_later_one() -> None:
    encoder = SlowEncoder()
    embeddings = EncoderEmbedding(encoder)

    async def run() -> list[Any]:
        encoder.error = RuntimeError("no memory")
        asked = [embeddings.aembed_text(text) for text in ("a", "b")]
        failed = await asyncio.gather(*asked, return_exceptions=True)
        encoder.error = None
        return [*failed, await embeddings.aembed_text("c")]

    *failed, found = asyncio.run(run())
    assert [str(error) for error in failed] == ["no memory"] * 2
    assert found == HashingEncoder().encode_documents(["c"])[0].tolist()


def test_a_langchain_community_that_is_too_new_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """ragas is imported anew; the module that langchain-community 0.4.2 dropped is not there."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "ragas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain_community.chat_models.vertexai", None)
    with pytest.raises(UnsupportedVersionError) as caught:
        reload(_framework)
    assert re.fullmatch(
        r"ragas 0\.4\S* cannot be imported with langchain-community \S+ \(.*vertexai.*\); "
        r"versions that go together: pip install .*\[ragas\]'?",
        str(caught.value),
    )


# The adjusted similarity and correctness in both interfaces of the real ragas


ANSWERS = judged_answers()
ROWS = [
    {"user_input": question, "response": answer, "reference": reference[0]}
    for question, answer, reference in zip(
        ANSWERS.question_ids, ANSWERS.answers, ANSWERS.references, strict=True
    )
]
PAIRS = [{key: row[key] for key in ("reference", "response")} for row in ROWS]


def test_one_metric_serves_both_interfaces(encoder: Any, adjustment: Any, expected: Any) -> None:
    metric = StyleAdjustedSimilarity(encoder, adjustment)
    assert isinstance(metric, SimpleBaseMetric)
    assert isinstance(metric, collections.SemanticSimilarity)
    assert isinstance(metric, Metric)
    wanted = pytest.approx(expected.score.tolist())
    batch = metric.batch_score(PAIRS)
    assert [result.value for result in batch] == wanted
    assert asyncio.run(metric.ascore(**PAIRS[5])).value == pytest.approx(expected.score[5])
    assert metric.score(**PAIRS[5]).value == pytest.approx(expected.score[5])
    assert metric.single_turn_score(SingleTurnSample(**PAIRS[5])) == pytest.approx(
        expected.score[5]
    )
    dataset = EvaluationDataset.from_list(ROWS)
    result = evaluate(
        dataset,
        metrics=[SemanticSimilarity(), metric],
        embeddings=EncoderEmbedding(encoder),
        show_progress=False,
    )
    assert result["style_adjusted_similarity"] == wanted
    assert result["semantic_similarity"] == pytest.approx(expected.similarity.tolist())
    again = asyncio.run(aevaluate(dataset, metrics=[metric], show_progress=False))
    assert again["style_adjusted_similarity"] == wanted


def test_a_threshold_makes_it_binary(encoder: Any, adjustment: Any, expected: Any) -> None:
    at = float(np.median(expected.score))
    metric = StyleAdjustedSimilarity(encoder, adjustment, threshold=at, name="right")
    found = metric.batch_score(PAIRS)
    assert [result.value for result in found] == (expected.score >= at - 1e-12).tolist()
    assert found[0].traces["output"]["score"] == pytest.approx(expected.score[0])
    assert metric.name == "right"
    strict = StyleAdjustedSimilarity(encoder, adjustment, threshold=0.0)
    assert strict.score(**PAIRS[5]).value == 1.0  # ragas' own takes 0 for none


def test_scores_stay_in_range_and_empty_answers_get_one(encoder: Any, adjustment: Any) -> None:
    steep = replace(adjustment, center=50.0)
    assert StyleAdjustedSimilarity(encoder, steep).score(**PAIRS[5]).value == 1.0

    class Even(HashingEncoder):
        def _encode(self, texts: Any) -> Any:
            return super()._encode(texts) + 1

    metric = StyleAdjustedSimilarity(Even(512), replace(adjustment, encoder=""))
    empty = metric.score(reference="name1 river1", response="")
    assert -1 <= empty.value <= 1
    with pytest.raises(DataError, match="zero or not finite"):
        StyleAdjustedSimilarity(encoder, adjustment).score(reference="a", response="")


def test_parts_that_do_not_go_together_are_refused(encoder: Any, adjustment: Any) -> None:
    with pytest.raises(DataError, match="fitted on encoder 'hashing-512', not on 'hashing-64'"):
        StyleAdjustedSimilarity(HashingEncoder(64), adjustment)
    with pytest.raises(DataError, match="no StyleAdjustment"):
        StyleAdjustedSimilarity(encoder, "style.json")  # type: ignore[arg-type]


def test_answer_correctness_with_the_adjusted_similarity(
    encoder: Any, adjustment: Any, expected: Any
) -> None:
    ours, theirs = FixedModernLLM(), FixedModernLLM()
    adjusted = StyleAdjustedAnswerCorrectness(ours, encoder, adjustment)
    raw = collections.AnswerCorrectness(llm=theirs, embeddings=EncoderEmbedding(encoder))
    rows = ROWS[4:8]
    found, plain = adjusted.batch_score(rows), raw.batch_score(rows)
    assert sorted(ours.prompts) == sorted(theirs.prompts)
    for i, result in enumerate(found):
        assert result.value == pytest.approx(0.75 * 2 / 3 + 0.25 * expected.score[4 + i])
        output = result.traces["output"]
        assert output["answer_correctness"] == pytest.approx(plain[i].value)
        assert output["similarity"] == pytest.approx(expected.similarity[4 + i])
    without = StyleAdjustedAnswerCorrectness(ours, encoder, adjustment, weights=[1.0, 0.0])
    alone = without.score(**rows[0])
    assert alone.value == pytest.approx(2 / 3)
    assert alone.traces is None

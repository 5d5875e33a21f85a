"""The adjusted similarity and correctness in both interfaces of the real ragas."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
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

from rag_sourcebias.answers.measure import (
    StyleAdjustment,
    fit_similarity_adjustment,
    reference_similarity,
)
from rag_sourcebias.core.errors import DataError
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

ANSWERS = judged_answers()
ROWS = [
    {"user_input": question, "response": answer, "reference": reference[0]}
    for question, answer, reference in zip(
        ANSWERS.question_ids, ANSWERS.answers, ANSWERS.references, strict=True
    )
]
PAIRS = [{key: row[key] for key in ("reference", "response")} for row in ROWS]


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder(512)


@pytest.fixture(scope="module")
def adjustment() -> StyleAdjustment:
    return fit_similarity_adjustment(ANSWERS, HashingEncoder(512))


@pytest.fixture(scope="module")
def expected(adjustment: StyleAdjustment) -> Any:
    cosine = reference_similarity(ANSWERS.references, ANSWERS.answers, HashingEncoder(512))
    return adjustment.adjust(ANSWERS.answers, cosine)


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
    with pytest.raises(DataError, match="type object is no encoder"):
        StyleAdjustedSimilarity(object(), adjustment)  # type: ignore[arg-type]
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

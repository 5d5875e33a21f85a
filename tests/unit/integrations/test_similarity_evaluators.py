"""The adjusted similarity where LlamaIndex and LangChain score answers."""

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from hashing_encoder import HashingEncoder
from judged_answers import judged_answers

pytest.importorskip("llama_index.core")
pytest.importorskip("langchain_classic")

from langchain_classic.evaluation import StringEvaluator
from langchain_classic.evaluation.embedding_distance import (
    EmbeddingDistance,
    EmbeddingDistanceEvalChain,
)
from llama_index.core.evaluation import SemanticSimilarityEvaluator

from rag_sourcebias.core.errors import DataError
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
from rag_sourcebias_integrations.langchain.similarity import StyleAdjustedDistance
from rag_sourcebias_integrations.llama_index.embeddings import (
    EncoderEmbedding,
    StyleAdjustedSimilarity,
)

pytestmark = pytest.mark.frameworks

ANSWERS = judged_answers()
REFERENCES = [reference[0] for reference in ANSWERS.references]


# LlamaIndex


def test_llama_index_scores_less_the_style(
    encoder: Any, adjustment: Any, expected: Any, own_loop: None
) -> None:
    evaluator = StyleAdjustedSimilarity(encoder, adjustment, similarity_threshold=0.5)
    assert isinstance(evaluator, SemanticSimilarityEvaluator)
    raw = SemanticSimilarityEvaluator(embed_model=EncoderEmbedding(encoder))
    for i in (4, 5, 6, 7):
        row = {"response": ANSWERS.answers[i], "reference": REFERENCES[i]}
        encoder.calls.clear()
        found = evaluator.evaluate(query="q", **row)
        assert encoder.calls == [[row["response"], row["reference"]]]
        assert found.score == pytest.approx(expected.score[i])
        assert found.passing == (expected.score[i] >= 0.5)
        assert found.similarity == pytest.approx(raw.evaluate(**row).score)
        assert found.score == pytest.approx(found.similarity - found.offset)
        assert (found.query, found.response) == ("q", row["response"])
        assert found.feedback == (
            f"cosine {found.similarity:.4f}, of which style {found.offset:+.4f}"
        )


def test_llama_index_refuses_what_does_not_go_together(encoder: Any, adjustment: Any) -> None:
    evaluator = StyleAdjustedSimilarity(EncoderEmbedding(encoder), adjustment)
    with pytest.raises(DataError, match="reference is missing"):
        asyncio.run(evaluator.aevaluate(response="a"))
    with pytest.raises(DataError, match="response is missing"):
        asyncio.run(evaluator.aevaluate(reference="a"))
    with pytest.raises(DataError, match="fitted on encoder 'hashing-512', not on 'hashing-64'"):
        StyleAdjustedSimilarity(HashingEncoder(64), adjustment)
    with pytest.raises(DataError, match="no encoder"):
        StyleAdjustedSimilarity("model", adjustment)


# LangChain


def test_langchain_distances_plus_the_style(encoder: Any, adjustment: Any, expected: Any) -> None:
    chain = StyleAdjustedDistance(encoder, adjustment)
    assert isinstance(chain, EmbeddingDistanceEvalChain)
    assert isinstance(chain, StringEvaluator)
    raw = None  # LangChain's own chain wants langchain-openai, whatever embeds
    if find_spec("langchain_openai") is not None:
        raw = EmbeddingDistanceEvalChain(embeddings=EncoderEmbeddings(encoder))
    for i in (4, 5, 6, 7):
        row = {"prediction": ANSWERS.answers[i], "reference": REFERENCES[i]}
        encoder.calls.clear()
        found = chain.evaluate_strings(**row)
        assert encoder.calls == [[row["prediction"], row["reference"]]]
        assert found["score"] == pytest.approx(1 - expected.score[i])
        assert found["raw_score"] == pytest.approx(1 - expected.similarity[i])
        if raw is not None:
            assert found["raw_score"] == pytest.approx(raw.evaluate_strings(**row)["score"])
        assert found["score"] == pytest.approx(found["raw_score"] + found["style_offset"])
        again = asyncio.run(chain.aevaluate_strings(**row))
        assert again == pytest.approx(found)
    assert chain.evaluation_name == "style_adjusted_cosine_distance"


def test_langchain_refuses_what_does_not_go_together(encoder: Any, adjustment: Any) -> None:
    with pytest.raises(DataError, match="distance 'euclidean' cannot be adjusted"):
        StyleAdjustedDistance(
            EncoderEmbeddings(encoder), adjustment, distance_metric=EmbeddingDistance.EUCLIDEAN
        )
    with pytest.raises(DataError, match="not on 'hashing-64'"):
        StyleAdjustedDistance(EncoderEmbeddings(HashingEncoder(64)), adjustment)

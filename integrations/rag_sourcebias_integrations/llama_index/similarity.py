"""LlamaIndex's semantic similarity without what the style of a response adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.evaluation import EvaluationResult, SemanticSimilarityEvaluator

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.adjusted_similarity import ResponseAdjuster, cosine_similarities
from rag_sourcebias.measures.answer_adjustment import StyleAdjustment
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding

__all__ = ["AdjustedResult", "StyleAdjustedSimilarity"]


class AdjustedResult(EvaluationResult):
    """``score`` is ``similarity`` − ``offset``, kept within [−1, 1]."""

    similarity: float
    offset: float


class StyleAdjustedSimilarity(SemanticSimilarityEvaluator):
    """Cosine of response and reference, less what the length of the response adds.

    Works wherever ``SemanticSimilarityEvaluator`` does (``BatchEvalRunner`` included). The texts
    embedded are the same. The adjusted score of an average answer of the fit is its raw cosine;
    short answers score lower, long ones higher, and a threshold chosen for the raw cosine no
    longer fits.

    Parameters
    ----------
    embed_model : Encoder or BaseEmbedding
        What the adjustment was fitted on; checked where both are known.
    adjustment : StyleAdjustment
        Of :func:`~rag_sourcebias.measures.fit_similarity_adjustment` or
        :func:`~rag_sourcebias.measures.read_adjustment`.
    similarity_threshold : float
        Adjusted score from which on a response passes.
    covariates : mapping of str to function, optional
        How covariates of the fit are computed from a response.

    Raises
    ------
    DataError
        If these do not go together; on evaluation, if a vector is zero or not finite, or
        response or reference is missing.
    """

    def __init__(
        self,
        embed_model: BaseEmbedding | Encoder,
        adjustment: StyleAdjustment,
        *,
        similarity_threshold: float = 0.8,
        covariates: Mapping[str, Callable[[str], float]] | None = None,
    ) -> None:
        self._adjust = ResponseAdjuster(adjustment, covariates)
        if not isinstance(embed_model, BaseEmbedding):
            embed_model = EncoderEmbedding(embed_model)  # refuses what is no encoder
        if isinstance(embed_model, EncoderEmbedding):
            self._adjust.check_encoder(embed_model.fingerprint)
        super().__init__(embed_model=embed_model, similarity_threshold=similarity_threshold)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> AdjustedResult:
        """Score one response; both texts are embedded in one call."""
        if response is None or reference is None:
            missing = "response" if response is None else "reference"
            raise DataError(f"{missing} is missing; both response and reference are compared")
        vectors = await self._embed_model.aget_text_embedding_batch([response, reference])
        cosine = cosine_similarities([vectors[0]], [vectors[1]])
        similarity, offset, score = (float(x[0]) for x in self._adjust([response], cosine))
        return AdjustedResult(
            query=query,
            contexts=contexts,
            response=response,
            score=score,
            passing=score >= self._similarity_threshold,
            feedback=f"cosine {similarity:.4f}, of which style {offset:+.4f}",
            similarity=similarity,
            offset=offset,
        )

"""ragas' semantic similarity without what the style of a response adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.metrics.base import MetricOutputType, MetricType, SingleTurnMetric
from ragas.metrics.collections import SemanticSimilarity
from ragas.metrics.result import MetricResult
from ragas.run_config import RunConfig

from rag_sourcebias.measures.answer_adjustment import StyleAdjustment
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.ragas.cosine import AdjustedCosine

__all__ = ["StyleAdjustedSimilarity"]


class StyleAdjustedSimilarity(SemanticSimilarity, SingleTurnMetric):
    """Cosine of response and reference, less what the length of the response adds.

    One metric for both interfaces of ragas: ``ascore``, ``score`` and their batches as a
    collections metric (in an ``@experiment``, say), and in ``metrics=[…]`` of ``evaluate`` and
    ``aevaluate``. In a legacy ``AnswerCorrectness`` give it as ``answer_similarity=``. The texts
    embedded are those that ragas would embed.

    A score is within [−1, 1]; what leaves that range is cut off (of 1,500 answers of EVOUNA with
    all-MiniLM-L6-v2 none did). The mean of the answers of the fit keeps its level: short answers
    move down, long ones up, and a threshold chosen for the raw cosine no longer fits. The raw
    cosine and the offset are in ``traces["output"]`` of the ``MetricResult``; in ``evaluate`` put
    ragas' own metric beside this one.

    Parameters
    ----------
    embeddings : Encoder or BaseRagasEmbedding
        What the adjustment was fitted on; checked where both are known.
    adjustment : StyleAdjustment
        Of :func:`~rag_sourcebias.measures.fit_similarity_adjustment` or
        :func:`~rag_sourcebias.measures.read_adjustment`.
    name : str
    threshold : float, optional
        Makes the score 1 from this adjusted similarity on, and 0 below.
    covariates : mapping of str to function, optional
        How covariates of the fit are computed from a response.

    Raises
    ------
    DataError
        If these do not go together; on scoring, if a vector is zero or not finite.
    """

    output_type = MetricOutputType.CONTINUOUS

    def __init__(
        self,
        embeddings: BaseRagasEmbedding | Encoder,
        adjustment: StyleAdjustment,
        *,
        name: str = "style_adjusted_similarity",
        threshold: float | None = None,
        covariates: Mapping[str, Callable[[str], float]] | None = None,
    ) -> None:
        self._cosine = AdjustedCosine(embeddings, adjustment, covariates)
        super().__init__(
            embeddings=self._cosine.embeddings,
            name=name,
            threshold=threshold,
            allowed_values=(-1.0, 1.0),
        )
        self._required_columns = {MetricType.SINGLE_TURN: {"reference", "response"}}

    def init(self, run_config: RunConfig) -> None:
        """Nothing to prepare: the embeddings are its own."""

    async def ascore(self, reference: str, response: str) -> MetricResult:
        """Score one response."""
        return (await self._results([reference], [response]))[0]

    async def abatch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Score rows with ``reference`` and ``response``; all texts are embedded in one call."""
        return await self._results(
            [row["reference"] for row in inputs], [row["response"] for row in inputs]
        )

    async def _single_turn_ascore(
        self,
        sample: SingleTurnSample,
        callbacks: Any,  # noqa: ANN401, ARG002
    ) -> float:
        result = await self.ascore(reference=sample.reference, response=sample.response)
        return float(result.value)

    async def _results(
        self, references: Sequence[str], responses: Sequence[str]
    ) -> list[MetricResult]:
        found = await self._cosine(references, responses)
        return [
            MetricResult(
                value=score if self.threshold is None else float(score >= self.threshold),
                reason=f"cosine {similarity:.4f}, of which style {offset:+.4f}",
                traces={"output": {"similarity": similarity, "offset": offset, "score": score}},
            )
            for similarity, offset, score in zip(*(part.tolist() for part in found), strict=True)
        ]

"""ragas' answer correctness with the adjusted similarity inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ragas.embeddings.base import BaseRagasEmbedding
from ragas.metrics.collections import AnswerCorrectness
from ragas.metrics.result import MetricResult

from rag_sourcebias.measures.answer_adjustment import StyleAdjustment
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.ragas.cosine import AdjustedCosine

__all__ = ["StyleAdjustedAnswerCorrectness"]

_found: ContextVar[tuple[float, float, float] | None] = ContextVar("similarity", default=None)


class StyleAdjustedAnswerCorrectness(AnswerCorrectness):
    """Weighted mean of the F1 of statements and of the style-adjusted cosine.

    What the LLM is asked is ragas' own; only the similarity differs (see
    :class:`StyleAdjustedSimilarity`). ``traces["output"]`` of a result holds the raw cosine, its
    offset, and ``answer_correctness``, what ragas' own metric would have given. In ``evaluate``
    use the legacy ``AnswerCorrectness(answer_similarity=StyleAdjustedSimilarity(…))``.

    Parameters
    ----------
    llm : InstructorBaseRagasLLM
    embeddings, adjustment, covariates
        As for :class:`StyleAdjustedSimilarity`.
    name : str
    weights : sequence of float
        Of F1, in [0, 1], and of the adjusted cosine, in [−1, 1].
    beta : float

    Raises
    ------
    DataError
        If embeddings and adjustment do not go together.
    """

    def __init__(
        self,
        llm: Any,  # noqa: ANN401
        embeddings: BaseRagasEmbedding | Encoder,
        adjustment: StyleAdjustment,
        *,
        name: str = "style_adjusted_answer_correctness",
        weights: Sequence[float] = (0.75, 0.25),
        beta: float = 1.0,
        covariates: Mapping[str, Callable[[str], float]] | None = None,
    ) -> None:
        self._cosine = AdjustedCosine(embeddings, adjustment, covariates)
        super().__init__(
            llm=llm,
            embeddings=self._cosine.embeddings,
            name=name,
            weights=list(weights),
            beta=beta,
            allowed_values=(-1.0, 1.0),
        )

    async def ascore(self, user_input: str, response: str, reference: str) -> MetricResult:
        """Score one response."""
        _found.set(None)
        result = await super().ascore(user_input=user_input, response=response, reference=reference)
        found = _found.get()
        if found is None:  # the similarity has no weight
            return result
        similarity, offset, score = found
        share = self.weights[1] / sum(self.weights)
        return MetricResult(
            value=result.value,
            reason=f"cosine {similarity:.4f}, of which style {offset:+.4f}",
            traces={
                "output": {
                    "answer_correctness": result.value + share * (similarity - score),
                    "similarity": similarity,
                    "offset": offset,
                }
            },
        )

    async def _calculate_similarity(self, response: str, reference: str) -> float:
        similarity, offset, score = (
            float(part[0]) for part in await self._cosine([reference], [response])
        )
        _found.set((similarity, offset, score))
        return score

"""ragas' metrics and embeddings with the style of an answer taken out."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast

import numpy as np
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.metrics.base import MetricOutputType, MetricType, SingleTurnMetric
from ragas.metrics.collections import AnswerCorrectness, SemanticSimilarity
from ragas.metrics.result import MetricResult
from ragas.run_config import RunConfig

from rag_sourcebias.answers.measure import (
    AdjustedScores,
    StyleAdjustment,
    cosine_similarities,
)
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias_integrations._require import require_encoder
from rag_sourcebias_integrations._rescoring import adjustable

# An encoder of this library as a ragas embedding.


Vector = list[float]


class EncoderEmbedding(BaseRagasEmbedding):
    """Embed with an encoder, in every metric of ragas that embeds; texts arrive unaltered.

    ragas' similarity metrics know no query side: texts are encoded as documents. Only
    ``embed_query``, which the legacy answer relevancy calls, encodes a query. The async methods
    use a thread, and join concurrent calls into one of the encoder. To keep vectors between
    runs give it a :class:`rag_sourcebias.retrieval.CachedEncoder`: the key of a ragas cache does
    not name the model.

    Parameters
    ----------
    encoder : Encoder

    Raises
    ------
    DataError
        If ``encoder`` is none.
    """

    def __init__(self, encoder: Encoder) -> None:
        require_encoder(encoder)
        super().__init__(cache=None)
        self.encoder = encoder
        self._lock = threading.Lock()  # tokenizers may not be shared by threads

    def __repr__(self) -> str:
        return f"EncoderEmbedding({self.encoder.name!r})"

    def embed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text."""
        return self.embed_texts([text], **kwargs)[0]

    def embed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401, ARG002
        """Embed texts in one call of the encoder; one vector for each, in order."""
        # ragas too takes a single text for one of one
        given = [texts] if isinstance(texts, str) else list(texts)
        if not given:
            return []
        with self._lock:
            return cast("list[Vector]", self.encoder.encode_documents(given).tolist())

    async def aembed_text(self, text: str, **kwargs: Any) -> Vector:  # noqa: ANN401
        """Embed one text without blocking the event loop."""
        return (await self.aembed_texts([text], **kwargs))[0]

    async def aembed_texts(self, texts: Sequence[str], **kwargs: Any) -> list[Vector]:  # noqa: ANN401
        """Embed texts without blocking the event loop; one vector for each, in order."""
        return await asyncio.to_thread(self.embed_texts, texts, **kwargs)

    embed_documents = embed_texts
    aembed_documents = aembed_texts

    def embed_query(self, text: str) -> Vector:
        """Embed one query."""
        with self._lock:
            return cast("Vector", self.encoder.encode_queries([text])[0].tolist())

    async def aembed_query(self, text: str) -> Vector:
        """Embed one query without blocking the event loop."""
        return await asyncio.to_thread(self.embed_query, text)


# The adjusted cosine of responses and references, over any ragas embedding.


class AdjustedCosine:
    """Embeds what it is given in one call, and takes off what style adds.

    Raises
    ------
    DataError
        If ``embeddings`` is neither an encoder nor a modern ragas embedding, or the adjustment
        was fitted on another encoder.
    """

    def __init__(
        self,
        embeddings: BaseRagasEmbedding | Encoder,
        adjustment: StyleAdjustment,
    ) -> None:
        self._adjustment = adjustment
        self.embeddings = adjustable(embeddings, adjustment, BaseRagasEmbedding, EncoderEmbedding)

    async def __call__(
        self, references: Sequence[str | None], responses: Sequence[str | None]
    ) -> AdjustedScores:
        """Score each response against its own reference."""
        # an empty text is embedded as a blank, as in ragas
        wanted, given = ([text or " " for text in texts] for texts in (references, responses))
        place = {text: row for row, text in enumerate(dict.fromkeys(wanted + given))}
        if not place:
            return AdjustedScores(*np.zeros((3, 0)))
        vectors = np.array(await self.embeddings.aembed_texts(list(place)), dtype=np.float64)
        sides = (vectors[[place[text] for text in texts]] for texts in (given, wanted))
        return self._adjustment.adjust(given, cosine_similarities(*sides))


# ragas' semantic similarity without what the style of a response adds.


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
        Of :func:`~rag_sourcebias.answers.fit_similarity_adjustment` or
        :func:`~rag_sourcebias.answers.read_adjustment`.
    name : str
    threshold : float, optional
        Makes the score 1 from this adjusted similarity on, and 0 below.

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
    ) -> None:
        self._cosine = AdjustedCosine(embeddings, adjustment)
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
        return float((await self.ascore(sample.reference, sample.response)).value)

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


# ragas' answer correctness with the adjusted similarity inside.


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
    embeddings, adjustment
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
    ) -> None:
        self._cosine = AdjustedCosine(embeddings, adjustment)
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

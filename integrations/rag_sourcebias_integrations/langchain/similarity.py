"""LangChain's embedding distance without what the style of a prediction adds."""

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.utils import pre_init
from pydantic import PrivateAttr

from rag_sourcebias.answers.measure import StyleAdjustment
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias_integrations._require import require
from rag_sourcebias_integrations._rescoring import adjustable, adjusted
from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings

require(
    "langchain_classic",
    package="langchain-classic",
    extra="langchain-classic",
    feature="StyleAdjustedDistance",
)

from langchain_classic.evaluation.embedding_distance import (  # noqa: E402
    EmbeddingDistance,
    EmbeddingDistanceEvalChain,
)


class StyleAdjustedDistance(EmbeddingDistanceEvalChain):
    """Cosine distance of prediction and reference, plus what the prediction's length hides.

    A distance: lower is better. It is 1 − (cosine − offset), kept within [0, 2].
    The texts embedded are those of ``EmbeddingDistanceEvalChain``. A result also holds
    ``raw_score``, the distance as LangChain gives it, and ``style_offset``.

    Parameters
    ----------
    embeddings : Encoder or Embeddings
        What the adjustment was fitted on; checked where both are known.
    adjustment : StyleAdjustment
        Of :func:`~rag_sourcebias.answers.fit_similarity_adjustment` or
        :func:`~rag_sourcebias.answers.read_adjustment`.
    **options
        As for ``EmbeddingDistanceEvalChain``.

    Raises
    ------
    DataError
        If these do not go together, or another distance than cosine is asked for; on
        evaluation, if a vector is zero or not finite.
    """

    _adjustment: StyleAdjustment = PrivateAttr()

    def __init__(
        self,
        embeddings: Embeddings | Encoder,
        adjustment: StyleAdjustment,
        **options: Any,  # noqa: ANN401
    ) -> None:
        embeddings = adjustable(embeddings, adjustment, Embeddings, EncoderEmbeddings)
        super().__init__(embeddings=embeddings, **options)
        if self.distance_metric is not EmbeddingDistance.COSINE:
            raise DataError(
                f"distance {self.distance_metric.value!r} cannot be adjusted; the adjustment is "
                "one of the cosine"
            )
        self._adjustment = adjustment

    @pre_init
    def _validate_tiktoken_installed(cls, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N805
        """Ask for nothing of OpenAI, which LangChain's chain does whatever embeds."""
        return values

    @property
    def evaluation_name(self) -> str:
        """Name that LangChain shows."""
        return "style_adjusted_cosine_distance"

    @property
    def output_keys(self) -> list[str]:
        """Keys of a result."""
        return ["score", "raw_score", "style_offset"]

    def _prepare_output(self, result: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = super()._prepare_output(result)
        return kept | {key: result[key] for key in self.output_keys}

    def _call(
        self,
        inputs: dict[str, Any],
        run_manager: Any = None,  # noqa: ANN401, ARG002
    ) -> dict[str, Any]:
        texts = [inputs["prediction"], inputs["reference"]]
        return self._scored(texts[0], self.embeddings.embed_documents(texts))

    async def _acall(
        self,
        inputs: dict[str, Any],
        run_manager: Any = None,  # noqa: ANN401, ARG002
    ) -> dict[str, Any]:
        texts = [inputs["prediction"], inputs["reference"]]
        return self._scored(texts[0], await self.embeddings.aembed_documents(texts))

    def _scored(self, prediction: str, vectors: list[list[float]]) -> dict[str, Any]:
        similarity, offset, score = adjusted(self._adjustment, prediction, vectors)
        return {"score": 1 - score, "raw_score": 1 - similarity, "style_offset": offset}

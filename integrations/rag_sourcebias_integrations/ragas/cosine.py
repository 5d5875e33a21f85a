"""The adjusted cosine of responses and references, over any ragas embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from ragas.embeddings.base import BaseRagasEmbedding

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.adjusted_similarity import (
    AdjustedScores,
    ResponseAdjuster,
    cosine_similarities,
)
from rag_sourcebias.measures.answer_adjustment import StyleAdjustment
from rag_sourcebias.protocols import Encoder
from rag_sourcebias_integrations.ragas.embeddings import EncoderEmbedding

__all__ = ["AdjustedCosine"]


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
        covariates: Mapping[str, Callable[[str], float]] | None,
    ) -> None:
        self._adjust = ResponseAdjuster(adjustment, covariates)
        if not isinstance(embeddings, BaseRagasEmbedding):
            if not isinstance(embeddings, Encoder):
                raise DataError(
                    f"an object of type {type(embeddings).__qualname__} embeds nothing; expected "
                    "an encoder or a ragas embedding (BaseRagasEmbedding)"
                )
            embeddings = EncoderEmbedding(embeddings)
        if isinstance(embeddings, EncoderEmbedding):
            self._adjust.check_encoder(embeddings.encoder.fingerprint)
        self.embeddings = embeddings

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
        found = cosine_similarities(
            vectors[[place[text] for text in given]], vectors[[place[text] for text in wanted]]
        )
        return self._adjust(given, found)

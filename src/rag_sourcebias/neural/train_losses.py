"""The losses a debiased training is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.debias_loss import DebiasedRankingLoss
from rag_sourcebias.neural.loading import require_torch
from rag_sourcebias.neural.train_settings import TrainingSettings

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    CosineSimilarityLoss,
    MarginMSELoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import cos_sim, dot_score, pairwise_cos_sim, pairwise_dot_score
from torch import Tensor, nn

__all__ = ["CosineOfEachDocument", "base_loss", "debiased_loss"]

_CACHED_BATCH = 16  # rows that a gradient-caching loss embeds at a time


class CosineOfEachDocument(nn.Module):  # type: ignore[misc] # torch is not typed here
    """``CosineSimilarityLoss`` between the query and every document of a row.

    Columns are query and documents; labels have shape (rows, documents).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.loss = CosineSimilarityLoss(model)

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Return the mean over all (query, document), a scalar."""
        return self.compute_loss_from_embeddings(
            embed_columns(self.model, list(sentence_features)), labels
        )

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the same from embeddings that are there already."""
        query, *documents = embeddings
        parts = [
            self.loss.compute_loss_from_embeddings([query, document], labels[:, i])
            for i, document in enumerate(documents)
        ]
        return sum(parts[1:], parts[0]) / len(parts)


def base_loss(model: Any, settings: TrainingSettings) -> nn.Module:  # noqa: ANN401
    """Return L_rank for a model of sentence-transformers.

    Raises
    ------
    DataError
        If the model cannot be trained with it.
    """
    cosine = settings.similarity == "cosine"
    contrastive = {
        "scale": 20.0 if cosine else 1.0,
        "similarity_fct": cos_sim if cosine else dot_score,
    }
    if settings.loss == "mnrl":
        return MultipleNegativesRankingLoss(model, **contrastive)
    if settings.loss == "margin-mse":
        return MarginMSELoss(model, pairwise_cos_sim if cosine else pairwise_dot_score)
    if settings.loss == "cosine":
        return CosineOfEachDocument(model)
    try:
        return CachedMultipleNegativesRankingLoss(
            model, mini_batch_size=min(_CACHED_BATCH, settings.batch_size), **contrastive
        )
    except ValueError as error:
        raise DataError(f"loss 'cached-mnrl' does not fit this model ({error}); take 'mnrl'") from (
            error
        )


def debiased_loss(model: Any, settings: TrainingSettings) -> DebiasedRankingLoss:  # noqa: ANN401
    """Return L_rank with the hinge."""
    return DebiasedRankingLoss(
        base_loss(model, settings),
        settings.debias_weight,
        reduction=settings.reduction,
        scale=settings.scale,
        margin=settings.margin,
        target=settings.target,
        similarity=settings.similarity,
        rank_columns=settings.rank_columns,
    )

"""A ranking loss with a debiasing hinge, for the trainer of sentence-transformers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.debias_hinge import (
    Reduction,
    Similarity,
    Target,
    TwinHinge,
)
from rag_sourcebias.neural.debiased import Debiased, RankColumns, shadowed, total
from rag_sourcebias.neural.loading import require_torch

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.base.losses import uses_gradient_cache
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
)
from torch import Tensor, nn

__all__ = ["DebiasedRankingLoss"]


class DebiasedRankingLoss(Debiased):
    """L_rank + α·L_debias for encoders ([K] Eq. 1–2).

    Columns of the data set are (query, human document, LLM document[, further negatives]), in this
    order, where the two documents are twins: the same content in the words of a person and of an
    LLM. All columns are embedded once where the base loss can take embeddings or caches their
    gradients; with any other base loss, query and twins are embedded once more.

    Parameters
    ----------
    base_loss : torch.nn.Module
        L_rank: ``MultipleNegativesRankingLoss``, its cached variants, ``MarginMSELoss``,
        ``CosineSimilarityLoss`` and others of sentence-transformers.
    debias_weight : float
        α, at least 0. With 0 the base loss is called as it would be without this class, so that
        values, gradients and random numbers are the same to the bit; no hinge is computed.
    reduction : {"sum", "mean"}
        Of the hinge over the batch: as in [K] Eq. 1, or as in its official code.
    scale : float
        Factor on the similarity in the hinge; the official code has 20 for cosine, 1 for dot.
    margin : float
        Added to the scaled gap; with ``target="parity"``, a tolerance.
    target : {"human", "parity", "llm"}
        Who must not score lower: ``"human"`` is [K] Eq. 1; ``"parity"`` penalises any gap.
    similarity : {"cosine", "dot"}
        Similarity of the hinge.
    rank_columns : {"human", "both", "all"}
        What the base loss sees: ``"human"``, the query, the human document as the positive and
        the further negatives, but not the LLM document; ``"both"``, this and the same with the LLM
        document as the positive, added up, as in the official code; ``"all"``, the columns as they
        stand, the LLM document being the first negative.

    Raises
    ------
    DataError
        If a setting is not one of these, the loss is one of a cross-encoder, or it caches
        gradients in a way the hinge cannot enter; in use, if there are fewer than three columns.
    TrainingDivergedError
        In use, if a component is not finite; names the step.

    Notes
    -----
    The official code's convention is ``reduction="mean", scale=20, rank_columns="both"``. The
    returned components ``rank`` and ``debias`` (weight included) are summed and logged by the
    trainer. A gradient-caching loss does its own backward pass up to the embeddings; so does the
    hinge there, and the gradient of both travels with ``rank`` while ``debias`` holds its value.
    """

    def __init__(
        self,
        base_loss: nn.Module,
        debias_weight: float,
        *,
        reduction: Reduction,
        scale: float,
        margin: float = 0.0,
        target: Target = "human",
        similarity: Similarity = "cosine",
        rank_columns: RankColumns = "human",
    ) -> None:
        hinge = TwinHinge(
            weight=debias_weight,
            reduction=reduction,
            scale=scale,
            margin=margin,
            target=target,
            similarity=similarity,
        )
        super().__init__(base_loss, hinge, rank_columns)
        if isinstance(self.model, CrossEncoder):
            raise DataError(
                f"{type(base_loss).__name__} trains a cross-encoder; accepted is a loss of an "
                "encoder (DebiasedCrossEncoderLoss is the one for cross-encoders)"
            )
        self._cached = isinstance(base_loss, CachedMultipleNegativesRankingLoss)
        if not self._cached and any(uses_gradient_cache(part) for part in base_loss.modules()):
            raise DataError(
                f"{type(base_loss).__name__} caches gradients in a way the hinge cannot enter; "
                "accepted with gradient caching is CachedMultipleNegativesRankingLoss"
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Return what model cards state of the loss."""
        return {**super().get_config_dict(), "similarity": self.hinge.similarity}

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return ``rank`` and ``debias``, scalars; at weight 0 only ``rank``."""
        features = list(sentence_features)
        selections = self._selections(len(features))
        if self.hinge.weight == 0:
            calls = [self.loss([features[i] for i in chosen], labels) for chosen in selections]
            return self._only_rank(total(calls))
        if self._cached:
            return self._forward_cached(features, labels, selections)
        if hasattr(self.loss, "compute_loss_from_embeddings"):
            columns = embed_columns(self.model, features)
            rank = total(
                self.loss.compute_loss_from_embeddings([columns[i] for i in chosen], labels)
                for chosen in selections
            )
        else:
            rank = total(self.loss([features[i] for i in chosen], labels) for chosen in selections)
            columns = embed_columns(self.model, features[:3])
        gaps = self.hinge.gaps(*columns[:3])
        hinges = self.hinge.hinges(gaps)
        return self._components(rank, self.hinge.component(hinges), gaps, hinges)

    def _forward_cached(
        self, features: list[dict[str, Tensor]], labels: Tensor | None, selections: list[list[int]]
    ) -> dict[str, Tensor]:
        calculate = self.loss.calculate_loss
        seen: list[Tensor] = []

        def with_hinge(
            reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
        ) -> Tensor:
            # `reps` are leaves: what is added to their gradients here is replayed with the cache.
            rank = total(
                calculate([reps[i] for i in chosen], labels, with_backward=with_backward)
                for chosen in selections
            )
            gaps = self.hinge.gaps(*(torch.cat(column) for column in reps[:3]))
            hinges = self.hinge.hinges(gaps)
            debias = self.hinge.component(hinges)
            if with_backward:
                debias.backward()
            seen.extend(value.detach() for value in (debias, gaps, hinges))
            return rank

        with shadowed(self.loss, "calculate_loss", with_hinge):
            rank = self.loss(features, labels)
        return self._components(rank, *seen)

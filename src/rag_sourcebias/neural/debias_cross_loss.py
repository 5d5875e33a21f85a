"""The debiasing hinge for cross-encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.debias_hinge import (
    Reduction,
    Target,
    TwinHinge,
)
from rag_sourcebias.neural.debiased import Debiased, RankColumns, shadowed, total
from rag_sourcebias.neural.loading import require_torch

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from sentence_transformers import CrossEncoder
from torch import Tensor, nn

__all__ = ["DebiasedCrossEncoderLoss"]


class DebiasedCrossEncoderLoss(Debiased):
    """L_rank + α·L_debias for cross-encoders ([K] Eq. 1–2).

    As :class:`DebiasedRankingLoss`, with the raw scores of the model (before any activation) in
    the hinge. Pairs that the base loss has scored in the same step are not scored again.

    Parameters
    ----------
    base_loss : torch.nn.Module
        L_rank: a loss of ``sentence_transformers.cross_encoder`` over columns of texts, such as
        ``MultipleNegativesRankingLoss``, ``MarginMSELoss`` or ``BinaryCrossEntropyLoss``.
    debias_weight, reduction, scale, margin, target, rank_columns
        As there.

    Raises
    ------
    DataError
        As there; also if the model has more than one output.
    TrainingDivergedError
        In use, if a component is not finite; names the step.

    Notes
    -----
    With a base loss that caches gradients, the twins are scored again in a batch with a graph.
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
        rank_columns: RankColumns = "human",
    ) -> None:
        hinge = TwinHinge(
            weight=debias_weight, reduction=reduction, scale=scale, margin=margin, target=target
        )
        super().__init__(base_loss, hinge, rank_columns)
        if not isinstance(self.model, CrossEncoder) or self.model.num_labels != 1:
            raise DataError(
                f"{type(base_loss).__name__} has a {type(self.model).__name__} as its model; "
                "accepted is a CrossEncoder with one output"
            )

    def forward(
        self,
        inputs: Sequence[Sequence[str]],
        labels: Tensor | None = None,
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Return ``rank`` and ``debias``, scalars; at weight 0 only ``rank``."""
        columns = list(inputs)
        selections = self._selections(len(columns))
        settings = {k: v for k, v in (("prompt", prompt), ("task", task)) if v is not None}
        chosen = [[columns[i] for i in selection] for selection in selections]
        if self.hinge.weight == 0:
            return self._only_rank(total(self.loss(texts, labels, **settings) for texts in chosen))
        with _Scores(self.model) as scores:
            rank = total(self.loss(texts, labels, **settings) for texts in chosen)
            query, human, llm = columns[:3]
            pairs = [*zip(query, human, strict=True), *zip(query, llm, strict=True)]
            both = scores.of(pairs, settings)
        gaps = both[len(query) :] - both[: len(query)]
        hinges = self.hinge.hinges(gaps)
        return self._components(rank, self.hinge.component(hinges), gaps, hinges)


class _Scores:
    """The scores a cross-encoder gives while this context is open, by pair of texts."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - a CrossEncoder or its wrapper
        self._model = model
        self._rows: dict[tuple[str, str], int] = {}
        self._kept: list[Tensor] = []
        self._size = 0
        self._pairs: list[tuple[str, str]] = []
        self._with_grad = torch.is_grad_enabled()

    def __enter__(self) -> _Scores:
        preprocess = self._model.preprocess

        def noted(pairs: Sequence[Sequence[str]], **settings: Any) -> Any:  # noqa: ANN401
            self._pairs = [(query, text) for query, text in pairs]
            return preprocess(pairs, **settings)

        self._patch = shadowed(self._model, "preprocess", noted)
        self._patch.__enter__()
        self._hook = self._model.register_forward_hook(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        self._hook.remove()
        self._patch.__exit__(None, None, None)

    def of(self, pairs: list[tuple[str, str]], settings: dict[str, str]) -> Tensor:
        """Return raw scores, shape (pairs,); those not seen yet are computed in one batch."""
        if missing := [pair for pair in dict.fromkeys(pairs) if pair not in self._rows]:
            features = self._model.preprocess(missing, **settings)
            device = next(self._model.parameters()).device
            self._model(
                {k: v.to(device) if isinstance(v, Tensor) else v for k, v in features.items()}
            )
        scores = torch.cat(self._kept)
        return scores[torch.tensor([self._rows[pair] for pair in pairs], device=scores.device)]

    def _note(self, _module: nn.Module, _inputs: object, output: dict[str, Tensor]) -> None:
        # Scores without a graph (the first pass of a gradient cache) cannot train the hinge.
        scores = output["scores"].reshape(-1)
        if torch.is_grad_enabled() != self._with_grad or len(scores) != len(self._pairs):
            return
        for row, pair in enumerate(self._pairs, self._size):
            self._rows[pair] = row
        self._size += len(scores)
        self._kept.append(scores.float() if scores.dtype != torch.float64 else scores)

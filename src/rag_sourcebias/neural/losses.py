"""The debiasing hinge on twins, and the loss for encoders that adds it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from rag_sourcebias.core.errors import (
    DataError,
    TrainingDivergedError,
    require_one_of,
)
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
from torch.nn import functional

# The hinge on twins that losses of debiased training add, and what is counted of it.


Reduction = Literal["sum", "mean"]
Similarity = Literal["cosine", "dot"]
Target = Literal["human", "parity", "llm"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TwinHinge:
    """Penalty on twins (two texts of one content) that score differently.

    With the gap ``g = s(q, d_llm) − s(q, d_human)``, the hinge of one pair is

    - ``max(0, g + margin)`` for ``target="human"`` ([K] Eq. 1 at margin 0 and scale 1),
    - ``max(0, −g + margin)`` for ``target="llm"``,
    - ``max(0, |g| − margin)`` for ``target="parity"``: the margin is a tolerance there.

    Parameters
    ----------
    weight : float
        α of [K] Eq. 2, at least 0. Comparable between runs of one reduction and scale only.
    reduction : {"sum", "mean"}
        Over the pairs of the batch: the sum of [K] Eq. 1, or the mean of the official code.
    scale : float
        Factor on similarities before the hinge, above 0; the official code has 20 for cosine
        and 1 for the dot product. The margin is in scaled units.
    margin : float
        At least 0.
    target : {"human", "parity", "llm"}
    similarity : {"cosine", "dot"}
        Between embeddings; scores of a cross-encoder are taken as they are.

    Raises
    ------
    DataError
        If a value is not one of these.
    """

    weight: float
    reduction: Reduction
    scale: float
    margin: float = 0.0
    target: Target = "human"
    similarity: Similarity = "cosine"

    def __post_init__(self) -> None:
        for name, value, zero in (
            ("debias_weight", self.weight, True),
            ("scale", self.scale, False),
            ("margin", self.margin, True),
        ):
            if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
                least = "at least 0" if zero else "above 0"
                raise DataError(f"{name} is {value!r}; accepted is a finite number {least}")
        for name, choice, accepted in (
            ("reduction", self.reduction, get_args(Reduction)),
            ("target", self.target, get_args(Target)),
            ("similarity", self.similarity, get_args(Similarity)),
        ):
            require_one_of(name, choice, accepted)

    def gaps(self, query: Tensor, human: Tensor, llm: Tensor) -> Tensor:
        """Return unscaled ``s(q, d_llm) − s(q, d_human)``, shape (pairs,).

        Embeddings have shape (pairs, dimensions). Half precision is left first: a difference of
        two nearly equal similarities would have no digits in it.
        """
        vectors = [query, human, llm]
        if query.dtype in (torch.float16, torch.bfloat16):
            vectors = [vector.float() for vector in vectors]
        if self.similarity == "cosine":
            vectors = [functional.normalize(vector, dim=-1) for vector in vectors]
        query, human, llm = vectors
        return (query * (llm - human)).sum(dim=-1)

    def hinges(self, gaps: Tensor) -> Tensor:
        """Return the hinge of each pair from unscaled gaps, both of shape (pairs,)."""
        scaled = self.scale * gaps
        if self.target == "human":
            return (scaled + self.margin).relu()
        if self.target == "llm":
            return (self.margin - scaled).relu()
        return (scaled.abs() - self.margin).relu()

    def component(self, hinges: Tensor) -> Tensor:
        """Return α·L_debias, a scalar, from the hinges of a batch."""
        return self.weight * (hinges.sum() if self.reduction == "sum" else hinges.mean())


@dataclass(kw_only=True, slots=True)
class HingeStatistics:
    """What training saw of the hinge since the statistics were reset.

    Parameters
    ----------
    steps : int
        Forward passes with gradients.
    pairs : int
        Twins in them; 0 where the weight is 0, which computes no hinge.
    """

    steps: int = 0
    pairs: int = 0
    _violated: float = field(default=0.0, repr=False)
    _rank: float = field(default=0.0, repr=False)
    _debias: float = field(default=0.0, repr=False)

    @property
    def hinge_share(self) -> float:
        """Share of twins with a hinge above 0, in [0, 1]; NaN without any."""
        return _ratio(self._violated, self.pairs)

    @property
    def mean_rank_loss(self) -> float:
        """E[L_rank] of a forward pass; NaN without steps."""
        return _ratio(self._rank, self.steps)

    @property
    def mean_debias_loss(self) -> float:
        """w·E[L_debias] of a forward pass; NaN without twins."""
        return _ratio(self._debias, self.steps) if self.pairs else math.nan

    def add(self, rank: Tensor, debias: Tensor, hinges: Tensor, *, step: int) -> None:
        """Count one forward pass; ``step`` 0 only checks that its values are finite.

        All values leave the device together: one wait per step.

        Raises
        ------
        TrainingDivergedError
            If a component is not finite.
        """
        with torch.no_grad():
            wanted = (rank, debias, (hinges > 0).sum())
            values = torch.stack([value.float() for value in wanted]).tolist()
        check_finite(values[0], values[1], step=step)
        if step:
            self.steps += 1
            self.pairs += len(hinges)
            self._rank += values[0]
            self._debias += values[1]
            self._violated += values[2]

    def add_without_hinge(self, rank: Tensor, *, step: int) -> None:
        """Count one forward pass of weight 0, as :meth:`add` does."""
        value = float(rank.detach())
        check_finite(value, 0.0, step=step)
        if step:
            self.steps += 1
            self._rank += value


def check_finite(rank: float, debias: float, *, step: int) -> None:
    """Raise :class:`TrainingDivergedError` unless both components are finite numbers."""
    if math.isfinite(rank) and math.isfinite(debias):
        return
    where = f"in training step {step}" if step else "outside of training"
    raise TrainingDivergedError(
        f"the loss is not finite {where} (rank {rank}, debias {debias}); weights from before "
        "are the last good ones. Accepted is a finite loss: lower the learning rate or the debias "
        "weight, train in float32 or bfloat16 rather than float16, and look for empty texts",
        step=step,
    )


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


RankColumns = Literal["human", "both", "all"]

CITATION = """
@inproceedings{dai2024neural,
    title={Neural Retrievers are Biased Towards LLM-Generated Content},
    author={Sunhao Dai and Yuqi Zhou and Liang Pang and Weihao Liu and Xiaolin Hu and Yong Liu
        and Xiao Zhang and Gang Wang and Jun Xu},
    booktitle={Proceedings of the 30th ACM SIGKDD Conference on Knowledge Discovery and Data
        Mining},
    year={2024}
}
"""


def total(values: Iterable[Tensor | dict[str, Tensor]]) -> Tensor:
    """Add up losses, each a scalar or named scalars, as the trainer does."""
    scalars = [
        torch.stack(list(value.values())).sum() if isinstance(value, dict) else value
        for value in values
    ]
    return scalars[0] if len(scalars) == 1 else torch.stack(scalars).sum()


# A ranking loss with a debiasing hinge, for the trainer of sentence-transformers.


class DebiasedRankingLoss(nn.Module):  # type: ignore[misc] # torch is not typed here
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
        super().__init__()
        self.hinge = TwinHinge(
            weight=debias_weight,
            reduction=reduction,
            scale=scale,
            margin=margin,
            target=target,
            similarity=similarity,
        )
        if not isinstance(getattr(base_loss, "model", None), nn.Module):
            raise DataError(
                f"base_loss is a {type(base_loss).__name__}; accepted is a loss of "
                "sentence-transformers that holds its model as .model"
            )
        require_one_of("rank_columns", rank_columns, get_args(RankColumns))
        # The trainer exchanges `model` for a wrapped one, and model cards cite `loss`.
        self.model = base_loss.model
        self.loss = base_loss
        self.rank_columns = rank_columns
        self.step = 0
        self.statistics = HingeStatistics()
        if isinstance(self.model, CrossEncoder):
            raise DataError(
                f"{type(base_loss).__name__} trains a cross-encoder; accepted is a loss of an "
                "encoder"
            )
        self._cached = isinstance(base_loss, CachedMultipleNegativesRankingLoss)
        if not self._cached and any(uses_gradient_cache(part) for part in base_loss.modules()):
            raise DataError(
                f"{type(base_loss).__name__} caches gradients in a way the hinge cannot enter; "
                "accepted with gradient caching is CachedMultipleNegativesRankingLoss"
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Return what model cards state of the loss."""
        inner: dict[str, Any] = getattr(self.loss, "get_config_dict", dict)()
        return {
            "loss": type(self.loss).__name__,
            **{f"loss_{name}": value for name, value in inner.items()},
            "rank_columns": self.rank_columns,
            "debias_weight": self.hinge.weight,
            "reduction": self.hinge.reduction,
            "scale": self.hinge.scale,
            "margin": self.hinge.margin,
            "target": self.hinge.target,
            "similarity": self.hinge.similarity,
        }

    @property
    def citation(self) -> str:
        """BibTeX of the paper."""
        return CITATION

    def reset_statistics(self) -> HingeStatistics:
        """Return the statistics so far and start new ones."""
        before, self.statistics = self.statistics, HingeStatistics()
        return before

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return ``rank`` and ``debias``, scalars; at weight 0 only ``rank``."""
        features = list(sentence_features)
        selections = self._selections(len(features))
        if self.hinge.weight == 0:
            rank = total(self.loss([features[i] for i in chosen], labels) for chosen in selections)
            self.statistics.add_without_hinge(rank, step=self._counted_step())
            return {"rank": rank}
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
        hinges = self.hinge.hinges(self.hinge.gaps(*columns[:3]))
        return self._components(rank, self.hinge.component(hinges), hinges)

    def _selections(self, n_columns: int) -> list[list[int]]:
        """Return the columns of each call of the base loss."""
        if n_columns < 3:
            raise DataError(
                f"{type(self).__name__} got {n_columns} columns; accepted are query, human "
                "document, LLM document and any further negatives, in this order"
            )
        if self.rank_columns == "all":
            return [list(range(n_columns))]
        negatives = list(range(3, n_columns))
        human, llm = [0, 1, *negatives], [0, 2, *negatives]
        return [human] if self.rank_columns == "human" else [human, llm]

    def _counted_step(self) -> int:
        """Number this forward pass if it trains; 0 in an evaluation."""
        if not torch.is_grad_enabled():
            return 0
        self.step += 1
        return self.step

    def _components(self, rank: Tensor, debias: Tensor, hinges: Tensor) -> dict[str, Tensor]:
        self.statistics.add(rank, debias, hinges, step=self._counted_step())
        return {"rank": rank, "debias": debias}

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
            hinges = self.hinge.hinges(self.hinge.gaps(*(torch.cat(column) for column in reps[:3])))
            debias = self.hinge.component(hinges)
            if with_backward:
                debias.backward()
            seen.extend(value.detach() for value in (debias, hinges))
            return rank

        self.loss.calculate_loss = with_hinge  # shadows the method of this one object
        try:
            rank = self.loss(features, labels)
        finally:
            del self.loss.calculate_loss
        return self._components(rank, *seen)

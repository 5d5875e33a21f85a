"""The hinge on twins that losses of debiased training add, and what is counted of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from rag_sourcebias.errors import DataError, TrainingDivergedError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "HingeStatistics",
    "Reduction",
    "Similarity",
    "Target",
    "TwinHinge",
]

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
            if choice not in accepted:
                raise DataError(f"{name} {choice!r} is not one of {', '.join(accepted)}")

    def gaps(self, query: Tensor, human: Tensor, llm: Tensor) -> Tensor:
        """Return unscaled ``s(q, d_llm) − s(q, d_human)``, shape (pairs,).

        Embeddings have shape (pairs, dimensions). Half precision is left first: a difference of
        two nearly equal similarities would have no digits in it.
        """
        import torch
        from torch.nn import functional

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
        total = hinges.sum() if self.reduction == "sum" else hinges.mean()
        return self.weight * total


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
    _gap: float = field(default=0.0, repr=False)
    _hinge: float = field(default=0.0, repr=False)
    _rank: float = field(default=0.0, repr=False)
    _debias: float = field(default=0.0, repr=False)

    @property
    def hinge_share(self) -> float:
        """Share of twins with a hinge above 0, in [0, 1]; NaN without any."""
        return _ratio(self._violated, self.pairs)

    @property
    def mean_gap(self) -> float:
        """Mean of ``s(q, d_llm) − s(q, d_human)``, unscaled; NaN without twins."""
        return _ratio(self._gap, self.pairs)

    @property
    def mean_hinge(self) -> float:
        """Mean hinge of a pair, scaled, margin included; NaN without twins."""
        return _ratio(self._hinge, self.pairs)

    @property
    def mean_rank_loss(self) -> float:
        """E[L_rank] of a forward pass; NaN without steps."""
        return _ratio(self._rank, self.steps)

    @property
    def mean_debias_loss(self) -> float:
        """w·E[L_debias] of a forward pass; NaN without twins."""
        return _ratio(self._debias, self.steps) if self.pairs else math.nan

    @property
    def debias_to_rank(self) -> float:
        """w·E[L_debias] / E[L_rank], reduced as in training; NaN without steps."""
        return _ratio(self._debias, self._rank)

    def add(self, rank: Tensor, debias: Tensor, gaps: Tensor, hinges: Tensor, *, step: int) -> None:
        """Count one forward pass; ``step`` 0 only checks that its values are finite.

        All values leave the device together: one wait per step.

        Raises
        ------
        TrainingDivergedError
            If a component is not finite.
        """
        import torch

        with torch.no_grad():
            wanted = (rank, debias, (hinges > 0).sum(), gaps.sum(), hinges.sum())
            values = torch.stack([value.float() for value in wanted]).tolist()
        check_finite(values[0], values[1], step=step)
        if step == 0:
            return
        self.steps += 1
        self.pairs += len(gaps)
        self._rank += values[0]
        self._debias += values[1]
        self._violated += values[2]
        self._gap += values[3]
        self._hinge += values[4]

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

"""The hinge on twins that losses of debiased training add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from rag_sourcebias.core.errors import require, require_one_of
from rag_sourcebias.retrieval.cache import Similarity

if TYPE_CHECKING:
    from torch import Tensor

Reduction = Literal["sum", "mean"]


@dataclass(frozen=True, kw_only=True)
class TwinHinge:
    """Penalty on twins (two texts of one content) of which the LLM's scores higher.

    With the gap ``g = s(q, d_llm) − s(q, d_human)``, the hinge of one pair is ``max(0, g)``
    ([K] Eq. 1 at scale 1).

    Parameters
    ----------
    weight : float
        α of [K] Eq. 2, at least 0. Comparable between runs of one reduction and scale only.
    reduction : {"sum", "mean"}
        Over the pairs of the batch: the sum of [K] Eq. 1, or the mean of the official code.
    scale : float
        Factor on similarities before the hinge, above 0; the official code has 20 for cosine
        and 1 for the dot product.
    similarity : {"cosine", "dot"}
        Between embeddings.

    Raises
    ------
    DataError
        If a value is not one of these.
    """

    weight: float
    reduction: Reduction
    scale: float
    similarity: Similarity = "cosine"

    def __post_init__(self) -> None:
        require(
            (
                0 <= self.weight < math.inf,
                f"debias_weight is {self.weight!r}; accepted is a finite number at least 0",
            ),
            (
                0 < self.scale < math.inf,
                f"scale is {self.scale!r}; accepted is a finite number above 0",
            ),
        )
        require_one_of("reduction", self.reduction, get_args(Reduction))
        require_one_of("similarity", self.similarity, get_args(Similarity))

    def gaps(self, query: Tensor, human: Tensor, llm: Tensor) -> Tensor:
        """Return unscaled ``s(q, d_llm) − s(q, d_human)``, shape (pairs,).

        Embeddings have shape (pairs, dimensions). Half precision is left first: a difference of
        two nearly equal similarities would have no digits in it.
        """
        import torch

        vectors = [query, human, llm]
        if query.dtype in (torch.float16, torch.bfloat16):
            vectors = [vector.float() for vector in vectors]
        if self.similarity == "cosine":
            vectors = [torch.nn.functional.normalize(vector, dim=-1) for vector in vectors]
        query, human, llm = vectors
        return (query * (llm - human)).sum(dim=-1)

    def hinges(self, gaps: Tensor) -> Tensor:
        """Return the hinge of each pair from unscaled gaps, both of shape (pairs,)."""
        return (self.scale * gaps).relu()

    def component(self, hinges: Tensor) -> Tensor:
        """Return α·L_debias, a scalar, from the hinges of a batch."""
        return self.weight * (hinges.sum() if self.reduction == "sum" else hinges.mean())

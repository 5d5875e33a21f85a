"""What the debiasing losses for encoders and for cross-encoders share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.debias_hinge import (
    HingeStatistics,
    TwinHinge,
)
from rag_sourcebias.neural.loading import require_torch

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from torch import Tensor, nn

__all__ = ["Debiased", "RankColumns", "shadowed", "total"]

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


class Debiased(nn.Module):  # type: ignore[misc] # torch is not typed here
    """What the losses for encoders and for cross-encoders have in common."""

    def __init__(self, base_loss: nn.Module, hinge: TwinHinge, rank_columns: RankColumns) -> None:
        super().__init__()
        if not isinstance(getattr(base_loss, "model", None), nn.Module):
            raise DataError(
                f"base_loss is a {type(base_loss).__name__}; accepted is a loss of "
                "sentence-transformers that holds its model as .model"
            )
        if rank_columns not in get_args(RankColumns):
            raise DataError(
                f"rank_columns {rank_columns!r} is not one of {', '.join(get_args(RankColumns))}"
            )
        # The trainer exchanges `model` for a wrapped one, and model cards cite `loss`.
        self.model = base_loss.model
        self.loss = base_loss
        self.hinge = hinge
        self.rank_columns = rank_columns
        self.step = 0
        self.statistics = HingeStatistics()

    def reset_statistics(self) -> HingeStatistics:
        """Return the statistics so far and start new ones."""
        before, self.statistics = self.statistics, HingeStatistics()
        return before

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
        }

    @property
    def citation(self) -> str:
        """BibTeX of the paper."""
        return CITATION

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

    def _only_rank(self, rank: Tensor) -> dict[str, Tensor]:
        self.statistics.add_without_hinge(rank, step=self._counted_step())
        return {"rank": rank}

    def _components(
        self, rank: Tensor, debias: Tensor, gaps: Tensor, hinges: Tensor
    ) -> dict[str, Tensor]:
        self.statistics.add(rank, debias, gaps, hinges, step=self._counted_step())
        return {"rank": rank, "debias": debias}


def total(values: Iterable[Tensor | dict[str, Tensor]]) -> Tensor:
    """Add up losses, each a scalar or named scalars, as the trainer does."""
    scalars = [
        torch.stack(list(value.values())).sum() if isinstance(value, dict) else value
        for value in values
    ]
    return scalars[0] if len(scalars) == 1 else torch.stack(scalars).sum()


@contextmanager
def shadowed(owner: nn.Module, name: str, value: object) -> Iterator[None]:
    """Shadow a method of one object for a while."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

"""Settings of a debiased training."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from rag_sourcebias.errors import DataError
from rag_sourcebias.neural.debias_hinge import Reduction, Similarity, Target, TwinHinge

__all__ = ["BaseLoss", "Precision", "RankColumnNames", "TrainingSettings"]

BaseLoss = Literal["mnrl", "cached-mnrl", "margin-mse", "cosine"]
Precision = Literal["auto", "float32", "bf16", "fp16"]
RankColumnNames = Literal["human", "both", "all"]

_REGRESSION = ("margin-mse", "cosine")
_AT_LEAST = {
    "batch_size": 1,
    "epochs": 1,
    "max_steps": 1,
    "max_length": 1,
    "hard_negatives": 0,
    "mine_depth": 1,
    "min_grade": 1,
    "seed": 0,
    "eval_every": 1,
    "checkpoint_every": 1,
}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How an encoder is trained to treat twins alike ([K] Eq. 1–2).

    Parameters
    ----------
    debias_weight, reduction, scale, margin, target, similarity, rank_columns
        As for :class:`~rag_sourcebias.neural.debias_loss.DebiasedRankingLoss`. ``scale`` is that
        of the hinge; contrastive losses have their usual one (20 for cosine, 1 for dot).
    loss : {"mnrl", "cached-mnrl", "margin-mse", "cosine"}
        L_rank. The first two are contrastive (``MultipleNegativesRankingLoss``, and the same with
        cached gradients, which takes large batches in little memory). The others are regressions
        on what the untrained encoder says of human documents: its margins between the relevant
        document and each hard negative (``MarginMSELoss``), or its similarity of each
        (``CosineSimilarityLoss``). They pull the ranking back to where it was while the hinge moves
        the twins, and have nothing to learn at weight 0.
    batch_size : int
        Pairs in a step; at least 2 for a contrastive loss without hard negatives.
    epochs, max_steps : int, optional
        One of them; one epoch where neither is given.
    learning_rate : float
        Peak; falls linearly to 0 after the warm-up.
    warmup_ratio : float
        Share of the steps in which the learning rate rises, in [0, 1).
    weight_decay : float
    max_length : int, optional
        Tokens after which training texts are cut. The trained model keeps its own maximum length.
    hard_negatives : int
        Per pair and source, out of the ``mine_depth`` documents that the untrained encoder ranks
        highest in the corpus of each source; regressions take those of the human corpus only. 0
        leaves the other documents of a batch.
    mine_depth : int
    min_grade : int
        Lowest relevance grade that makes a pair a positive.
    seed : int
        Of the order of the data, the choice of negatives and dropout.
    precision : {"auto", "float32", "bf16", "fp16"}
        ``"auto"`` is bf16 on a GPU that has it, fp16 on another, float32 on the CPU.
    eval_every : int, optional
        Steps between two points of the history; without it only start and end are recorded. Each
        one encodes the judged corpus anew.
    checkpoint_every : int
        Steps after which training can be taken up again; the last two checkpoints are kept.

    Raises
    ------
    DataError
        If a value is not one of these, or two contradict each other.
    """

    debias_weight: float = 0.01
    reduction: Reduction = "sum"
    scale: float = 20.0
    margin: float = 0.0
    target: Target = "human"
    similarity: Similarity = "cosine"
    loss: BaseLoss = "mnrl"
    rank_columns: RankColumnNames = "human"
    batch_size: int = 16
    epochs: int | None = None
    max_steps: int | None = None
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    weight_decay: float = 0.0
    max_length: int | None = None
    hard_negatives: int = 1
    mine_depth: int = 50
    min_grade: int = 1
    seed: int = 0
    precision: Precision = "auto"
    eval_every: int | None = None
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        TwinHinge(
            weight=self.debias_weight,
            reduction=self.reduction,
            scale=self.scale,
            margin=self.margin,
            target=self.target,
            similarity=self.similarity,
        )
        for name, accepted in (
            ("loss", get_args(BaseLoss)),
            ("rank_columns", get_args(RankColumnNames)),
            ("precision", get_args(Precision)),
        ):
            if getattr(self, name) not in accepted:
                raise DataError(
                    f"{name} {getattr(self, name)!r} is not one of {', '.join(accepted)}"
                )
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise DataError(f"{name} is {value}; accepted is a number of at least {least}")
        for name, value, fits, accepted_range in (
            ("learning_rate", self.learning_rate, self.learning_rate > 0, "above 0"),
            ("warmup_ratio", self.warmup_ratio, 0 <= self.warmup_ratio < 1, "in [0, 1)"),
            ("weight_decay", self.weight_decay, self.weight_decay >= 0, "of at least 0"),
        ):
            if not (math.isfinite(value) and fits):
                raise DataError(f"{name} is {value!r}; accepted is a number {accepted_range}")
        self._check_together()

    def _check_together(self) -> None:
        if self.epochs is not None and self.max_steps is not None:
            raise DataError(
                f"epochs is {self.epochs} and max_steps {self.max_steps}; give one of them"
            )
        if self.regression and self.rank_columns == "all":
            raise DataError(
                f"loss {self.loss!r} with rank_columns 'all' would hold the LLM document where the "
                "untrained encoder ranks it, against the hinge; accepted are 'human' and 'both'"
            )
        if self.loss == "margin-mse" and not self.hard_negatives:
            raise DataError("loss 'margin-mse' learns margins to hard negatives; give 1 or more")
        if self.loss == "cosine" and self.similarity != "cosine":
            raise DataError(
                f"loss 'cosine' with similarity {self.similarity!r}; accepted is 'cosine'"
            )
        alone = self.batch_size == 1 and not self.hard_negatives and self.rank_columns != "all"
        if alone and not self.regression:
            raise DataError(
                f"loss {self.loss!r} has nothing to rank in a batch of 1 without hard negatives; "
                "give batch_size or hard_negatives of at least 2 or 1"
            )

    @property
    def regression(self) -> bool:
        """Whether the base loss learns scores of the untrained encoder."""
        return self.loss in _REGRESSION

    def to_dict(self) -> dict[str, str]:
        """Return what a report states, as text; settings left out are not listed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.epochs is None and self.max_steps is None:
            values["epochs"] = 1
        return {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in values.items()
            if value is not None
        }

"""The loss for encoders that adds the debiasing hinge on twins, and what is counted of it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from rag_sourcebias.core.errors import TrainingDivergedError, require_one_of
from rag_sourcebias.neural.hinge import TwinHinge
from rag_sourcebias.neural.loading import require_torch
from rag_sourcebias.neural.training_data import RankColumnNames

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

import torch
from sentence_transformers.base.losses.merged_forward import embed_columns
from torch import Tensor, nn

# What training saw of the hinge.


@dataclass(kw_only=True)
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
    _violated: float = 0.0
    _rank: float = 0.0
    _debias: float = 0.0

    @property
    def hinge_share(self) -> float | None:
        """Share of twins with a hinge above 0, in [0, 1]; None without any."""
        return self._violated / self.pairs if self.pairs else None

    @property
    def mean_rank_loss(self) -> float | None:
        """E[L_rank] of a forward pass; None without steps."""
        return self._rank / self.steps if self.steps else None

    @property
    def mean_debias_loss(self) -> float | None:
        """w·E[L_debias] of a forward pass; None without twins."""
        return self._debias / self.steps if self.pairs else None

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
        if not all(map(math.isfinite, values)):
            where = f"in training step {step}" if step else "outside of training"
            raise TrainingDivergedError(
                f"the loss is not finite {where} (rank {values[0]}, debias {values[1]}); weights "
                "from before are the last good ones. Accepted is a finite loss: lower the learning "
                "rate or the debias weight, train in float32 or bfloat16 rather than float16, and "
                "look for empty texts",
                step=step,
            )
        if step:
            self.steps += 1
            self.pairs += len(hinges)
            self._rank += values[0]
            self._debias += values[1]
            self._violated += values[2]


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
    LLM. All columns are embedded once.

    Parameters
    ----------
    base_loss : torch.nn.Module
        L_rank: ``MultipleNegativesRankingLoss`` or another loss of sentence-transformers that
        takes embeddings.
    hinge : TwinHinge
        At weight 0 the base loss is called as it would be without this class, so that values,
        gradients and random numbers are the same to the bit; no hinge is computed.
    rank_columns : {"human", "both", "all"}
        What the base loss sees: ``"human"``, the query, the human document as the positive and
        the further negatives, but not the LLM document; ``"both"``, this and the same with the LLM
        document as the positive, added up, as in the official code; ``"all"``, the columns as they
        stand, the LLM document being the first negative.

    Raises
    ------
    DataError
        If ``rank_columns`` is not one of these.
    TrainingDivergedError
        In use, if a component is not finite; names the step.

    Notes
    -----
    The official code's convention is ``reduction="mean", scale=20, rank_columns="both"``. The
    returned components ``rank`` and ``debias`` (weight included) are summed and logged by the
    trainer.
    """

    def __init__(
        self,
        base_loss: nn.Module,
        hinge: TwinHinge,
        *,
        rank_columns: RankColumnNames = "human",
    ) -> None:
        super().__init__()
        require_one_of("rank_columns", rank_columns, get_args(RankColumnNames))
        self.hinge = hinge
        # The trainer exchanges `model` for a wrapped one.
        self.model = base_loss.model
        self.loss = base_loss
        self.rank_columns = rank_columns
        self.step = 0
        self.statistics = HingeStatistics()

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return ``rank`` and ``debias``, scalars; at weight 0 only ``rank``."""
        features = list(sentence_features)
        selections = self._selections(len(features))
        if self.hinge.weight == 0:
            rank = total(self.loss([features[i] for i in chosen], labels) for chosen in selections)
            self.statistics.add(
                rank, rank.new_zeros(()), rank.new_zeros(0), step=self._counted_step()
            )
            return {"rank": rank}
        columns = embed_columns(self.model, features)
        rank = total(
            self.loss.compute_loss_from_embeddings([columns[i] for i in chosen], labels)
            for chosen in selections
        )
        hinges = self.hinge.hinges(self.hinge.gaps(*columns[:3]))
        debias = self.hinge.component(hinges)
        self.statistics.add(rank, debias, hinges, step=self._counted_step())
        return {"rank": rank, "debias": debias}

    def _selections(self, n_columns: int) -> list[list[int]]:
        """Return the columns of each call of the base loss."""
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

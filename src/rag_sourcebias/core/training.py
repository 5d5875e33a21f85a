"""How a training went, as data: what neural writes and a report shows."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainingPoint:
    """One evaluation during training.

    Parameters
    ----------
    step : int
        Optimiser steps done; 0 before training.
    rank_loss, debias_loss : float or None
        Means since the last point, the weight included; None before training.
    hinge_share : float or None
        Share of training pairs whose hinge was positive since the last point, in [0, 1].
    """

    step: int
    rank_loss: float | None = None
    debias_loss: float | None = None
    hinge_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingHistory:
    """One training run.

    Parameters
    ----------
    name : str
        Of the trained system, as in the report.
    debias_weight : float
    seed : int
    n_pairs : int
        (query, human document, LLM document) triples.
    n_steps : int
        Optimiser steps done.
    seconds : float
        Training time.
    settings : mapping of str to str
        Base loss, reduction, scale, margin, target, batch size, learning rate, precision, ….
    points : tuple of TrainingPoint
    """

    name: str
    debias_weight: float
    seed: int
    n_pairs: int
    n_steps: int
    seconds: float
    settings: Mapping[str, str]
    points: tuple[TrainingPoint, ...] = ()

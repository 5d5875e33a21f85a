"""What distinguishes groups of texts before any retriever sees them."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.types.intervals import Interval

__all__ = ["QUANTILES", "TextStatistic"]

#: Probabilities of :attr:`TextStatistic.quantiles`.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStatistic:
    """One statistic of the texts of one group ([W] Fig. 1, 4, 6; [K] Fig. 3).

    Parameters
    ----------
    group : str
        A style, a source, or an answering system.
    name : {"words", "BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap"}
        All but words compare a text with the original of which it is a version (or the reference
        answer), in [0, 1].
    n : int
        Texts.
    mean : Interval or None
        None where an interval cannot be computed (too few texts, or all alike).
    average : float
    quantiles : tuple of float
        At .05, .25, .5, .75 and .95.
    """

    group: str
    name: str
    n: int
    mean: Interval | None
    average: float
    quantiles: tuple[float, ...]

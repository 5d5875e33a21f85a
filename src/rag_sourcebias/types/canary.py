"""What canary queries told about a live retriever in one round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_sourcebias.types.serial import to_plain

__all__ = ["CanaryPoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPoint:
    """One round of canary queries, and all rounds so far.

    Parameters
    ----------
    at : float
        Unix time of the end of the round, in seconds.
    measure : str
        Such as ``"NDCG@5"``.
    human, llm : str
        The two sources compared; Relative Δ is positive where ``human`` ranks higher.
    labels : mapping of str to str
        Where the retriever stands, such as ``{"collection": "docs"}``.
    round_n : int
        Queries answered in this round.
    round_relative_delta : float or None
        Of this round alone, in percent; None where neither source scored.
    n : int
        Queries answered since the start.
    relative_delta : float or None
        Since the start, in percent.
    lower, upper : float
        Confidence sequence of it: holds at all rounds at once, within [-200, 200].
    confidence_level : float
    reference : float
        What it is held against, in percent.
    alarm : bool
        Whether the confidence sequence has left the reference at any round so far.
    failed : int
        Queries of this round that raised or timed out; they are left out.
    seconds : float
        Time that the round took.
    """

    at: float
    measure: str
    human: str
    llm: str
    labels: Mapping[str, str]
    round_n: int
    round_relative_delta: float | None
    n: int
    relative_delta: float | None
    lower: float
    upper: float
    confidence_level: float
    reference: float
    alarm: bool
    failed: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

"""What a monitor of retrieval skew knows at one moment, and what it alarms about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_sourcebias.types.serial import to_plain

__all__ = ["RANK_LIMITS", "Alarm", "GroupCount", "GroupShare", "MonitorSnapshot"]

Measure = Literal["exposure", "first"]
RANK_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Upper ends of the buckets of ranks that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCount:
    """What one source (or style) got, in whole documents.

    Parameters
    ----------
    group : str
        As in :class:`GroupShare`.
    documents : int
        Documents retrieved.
    ranks : tuple of int, length 8
        Of these, how many at ranks up to 1, 2, 3, 5, 10, 20, 50 and 100 (cumulative).
    """

    group: str
    documents: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """One source's (or style's) share of the ranks, and what it is held against.

    Parameters
    ----------
    group : str
        Source or style; ``""`` for documents without a tag, ``"other"`` beyond the cap.
    measure : {"exposure", "first"}
        Rank-weighted share of each retrieval, or share of first ranks.
    share, lower, upper : float
        Mean over retrievals since the start, in [0, 1], with a confidence sequence: it holds at
        all times at once. NaN before there is any.
    baseline : float or None
        What the share is tested against; None where there is nothing to test.
    evidence : float
        Natural log of the e-value against the baseline; 0 without one.
    alarm : bool
        Whether the evidence passed the threshold since the last reset.
    """

    group: str
    measure: Measure
    share: float
    lower: float
    upper: float
    baseline: float | None = None
    evidence: float = 0.0
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSnapshot:
    """A monitor's state for one set of labels.

    Parameters
    ----------
    labels : mapping of str to str
        Where the retrievals happened, such as ``{"collection": "docs"}``.
    by : {"source", "style"}
    n_retrievals, n_documents, n_empty : int
    n_observations : int
        What was tested: retrievals, or fewer where they are aggregated first.
    groups : tuple of GroupShare
        For each measure, groups in alphabetical order.
    baseline : str
        In words: what the shares are held against.
    dropped : mapping of str to int
        Events lost, by reason.
    counts : tuple of GroupCount
        Groups seen, in alphabetical order.
    corrected : mapping of str to float
        Shares of exposure corrected for errors of the tags, by group; empty where sensitivity and
        specificity of the tagger are not known.
    overflowed : mapping of str to int
        Retrievals of the monitor whose value of a label became ``"other"``, by label.
    bad_tags : int
        Tags that the monitor's retrievals came with and that could not be read.
    """

    labels: Mapping[str, str]
    by: Literal["source", "style"]
    n_retrievals: int
    n_documents: int
    n_empty: int
    n_observations: int
    groups: tuple[GroupShare, ...]
    baseline: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    counts: tuple[GroupCount, ...] = ()
    corrected: Mapping[str, float] = field(default_factory=dict)
    overflowed: Mapping[str, int] = field(default_factory=dict)
    bad_tags: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A share left its baseline, or changed.

    Parameters
    ----------
    rule : str
        ``"baseline"`` (the share differs from the baseline) or ``"change"`` (it moved).
    labels : mapping of str to str
    by : {"source", "style"}
    group, measure : str
        As in :class:`GroupShare`; of canary queries a measure such as ``"NDCG@5"``.
    n : int
        Observations up to the alarm, those of a reference window included.
    share, lower, upper : float
    baseline : float
    evidence : float
        Natural log of the e-value (or of the change statistic).
    at : float
        Unix time, in seconds.
    message : str
        One sentence.
    """

    rule: str
    labels: Mapping[str, str]
    by: Literal["source", "style"]
    group: str
    measure: str
    n: int
    share: float
    lower: float
    upper: float
    baseline: float
    evidence: float
    at: float
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

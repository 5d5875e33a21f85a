"""What a monitor of retrieval skew knows at one moment, and what it alarms about."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag_sourcebias.core.codec import Stored

logger = logging.getLogger("rag_sourcebias.monitor")
Measure = Literal["exposure", "first"]
MEASURES: tuple[Measure, ...] = ("exposure", "first")
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
        Mean over retrievals in [0, 1]: of all, or since the last change
        (``WatchState.n_level`` of them, in which users count at most ten times a half-day). The
        interval is that of means of half-days, once these are known.
    baseline : float or None
        What the share is held against; None where there is nothing to hold it against.
    statistic : float
        How far a change is told already: 1 raises an alarm.
    alarm : bool
        Whether the share is away from its baseline: told, and not back yet.
    baseline_lower, baseline_upper : float or None
        Interval of the baseline, where it is a level of the past.
    spread : float or None
        Standard deviation of one retrieval, as means of half-days vary.
    """

    group: str
    measure: Measure
    share: float
    lower: float
    upper: float
    baseline: float | None = None
    statistic: float = 0.0
    alarm: bool = False
    baseline_lower: float | None = None
    baseline_upper: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """How far a monitor has learnt what is usual.

    Parameters
    ----------
    half_days : int
        That there were: a change is not seen within one.
    left_to_learn : int
        Half-days until changes are told; 0 once they are.
    n_level : int or None
        Retrievals that the shares are means over, since the last change. None where that is all
        of them.
    """

    half_days: int
    left_to_learn: int
    n_level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSnapshot(Stored):
    """A monitor's state for one set of labels.

    Parameters
    ----------
    labels : mapping of str to str
        Where the retrievals happened, such as ``{"collection": "docs"}``.
    by : {"source", "style"}
    n_retrievals, n_documents, n_empty : int
    n_observations : int
        Retrievals that returned something.
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
    watch : WatchState or None
        None without a baseline.
    odd : mapping of str to int
        Retrievals that came late or twice, and jumps of the clock.
    unseen : tuple of str
        Groups of the baseline of which no document came.
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
    watch: WatchState | None = None
    odd: Mapping[str, int] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftPart:
    """What a part of a shift comes from, in points of exposure share as a fraction.

    Parameters
    ----------
    of : {"index", "asked", "ranking"}
        Shares in the store; the mix of topics; what ranking makes of both.
    change, lower, upper : float
        The changes add up to that of the share.
    """

    of: str
    change: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A share that moved in a shift, from its baseline to its level now."""

    group: str
    measure: Measure
    baseline: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm(Stored):
    """A share moved, or came back.

    Parameters
    ----------
    rule : str
        ``"shift"`` (a share moved), ``"new"`` or ``"gone"`` (it was, or is, 0),
        ``"composition"`` (a shift of which most comes from what the store holds), ``"untagged"``
        (the share of documents without a tag moved), ``"level"`` (a share was never at its known
        one), or ``"resolved"`` (back where it was).
    labels : mapping of str to str
    by : {"source", "style"}
    group, measure : str
        As in :class:`GroupShare`.
    n : int
        Observations up to the alarm, those that were learnt from included.
    share, lower, upper : float
    baseline : float
    statistic : float
        Of the change, in parts of the limit that raises an alarm.
    at : float
        Unix time, in seconds.
    message : str
        One sentence, or a few.
    baseline_lower, baseline_upper : float or None
    since : float or None
        Unix time at which the half-day began that the change did, as far as one can tell.
    n_since : int
        Retrievals since then.
    moves : tuple of Move
        Every share that moved in the same shift, ``group`` first.
    parts : tuple of ShiftPart
        What a shift of exposure is made of.
    next_step : str
        What to look at.
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
    statistic: float
    at: float
    message: str
    baseline_lower: float | None = None
    baseline_upper: float | None = None
    since: float | None = None
    n_since: int = 0
    moves: tuple[Move, ...] = ()
    parts: tuple[ShiftPart, ...] = ()
    next_step: str = ""

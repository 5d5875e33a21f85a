"""Watch in production which sources, or styles, get the ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.aggregate import Aggregation
from rag_sourcebias.monitor.baselines import Baseline
from rag_sourcebias.monitor.skew_settings import SkewSettings
from rag_sourcebias.monitor.tag_errors import TagErrors
from rag_sourcebias.monitor.watching import Watching
from rag_sourcebias.types.monitor import Alarm, Measure

__all__ = ["SkewMonitor"]


class SkewMonitor(Watching):
    """Hold the shares of the ranks against a baseline; an observer for production.

    ``observe`` appends to a buffer, which a thread of the monitor empties every 256 events, or a
    second after the first of them. ``snapshot``, ``flush`` and ``tick`` process at once. Memory is
    bounded, and nothing is raised into the application. A forked child starts empty: each process
    counts its own retrievals. Every retrieval that returned something is one observation of each
    group: its share of the rank weights ("exposure"), and whether its document came first
    ("first").

    Alarms hold under continuous looking while retrievals are independent: within a set of labels
    the error is split evenly over tested groups × measures (union bound), so that a false alarm of
    rule "baseline" ever comes with probability at most ``1 - confidence_level`` *per set of
    labels*; m sets have up to m times that. Intervals are of single shares at that level, for a
    share that stays the same; they are wider than the evidence needs. Retrievals must not repeat:
    ``aggregate`` those that do.

    Parameters
    ----------
    by : {"source", "style"}
    groups : sequence of str or None
        Groups told apart and tested; further ones are "other", documents without a tag "".
        None takes those of a :class:`CorpusShare`, or else the first ``max_groups`` that come:
        the error is then split over that many tests, and each event costs as many.
    baseline : CorpusShare, PoolShare, ReferenceWindow or None
        None watches without alarms. A reference window is evaluated at once when it is full,
        which takes some 0.1 ms per observation.
    browsing : str
        Weights of ranks: ``"dcg"``, ``"top-<k>"`` or ``"rbp-<p>"``; see
        :func:`~rag_sourcebias.measures.attention_weights`.
    measures : sequence of {"exposure", "first"}
    confidence_level : float
    labels : sequence of str
        Labels whose values are watched separately.
    max_label_sets, max_groups : int
        Told apart; further ones are counted as "other".
    max_documents : int
        Documents of a retrieval that are counted, from rank 1.
    aggregate : Aggregation or None
    change_run_length : float or None
        Watch for changes, too: observations between false alarms on average, per set of labels.
        After a change the share of that group is learnt anew and watched from there: a lasting
        change is one alarm of the group and measure, going back is another; see
        :mod:`~rag_sourcebias.monitor.sequential.restarting`. With :class:`PoolShare` it is the
        share less that of the pool. The baseline, and its rule, stay as they are.
    change_window : int
        Observations from which it is learnt, 2 to 100,000: changes within it are not seen, and
        after a short one only large ones. Learning takes some 0.05 ms per observation.
    tag_errors : TagErrors or None
        How often the tagger errs: ``corrected`` in snapshots are shares of exposure corrected
        for it, of which no interval is given. Tests and alarms are of shares as they are tagged.
    on_alarm : callable or None
        Told about each alarm, on the thread that processed it; what it raises is counted.
    clock : callable
        Seconds since 1970.

    Attributes
    ----------
    dropped : DroppedEvents
        Events and calls of ``on_alarm`` lost, by reason.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    def __init__(
        self,
        *,
        by: Literal["source", "style"] = "source",
        groups: Sequence[str] | None = None,
        baseline: Baseline | None = None,
        browsing: str = "dcg",
        measures: Sequence[Measure] = ("exposure", "first"),
        confidence_level: float = 0.95,
        labels: Sequence[str] = ("collection",),
        max_label_sets: int = 100,
        max_groups: int = 20,
        max_documents: int = 1_000,
        aggregate: Aggregation | None = None,
        change_run_length: float | None = None,
        change_window: int = 1_000,
        tag_errors: TagErrors | None = None,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(labels, str) or isinstance(groups, str):
            raise DataError(f"labels and groups are sequences of names, got {labels!r}, {groups!r}")
        settings = SkewSettings(
            by=by,
            groups=None if groups is None else tuple(groups),
            baseline=baseline,
            browsing=browsing,
            measures=tuple(measures),
            confidence_level=confidence_level,
            labels=tuple(labels),
            max_label_sets=max_label_sets,
            max_groups=max_groups,
            max_documents=max_documents,
            aggregate=aggregate,
            change_run_length=change_run_length,
            change_window=change_window,
            tag_errors=tag_errors,
        )
        super().__init__(settings, on_alarm=on_alarm, clock=clock)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        on_alarm: Callable[[Alarm], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> SkewMonitor:
        """Go on from what :meth:`to_dict` returned.

        Raises
        ------
        DataError
            If it is not the state of a monitor.
        UnsupportedVersionError
            If another release wrote it.
        """
        monitor = cls(on_alarm=on_alarm, clock=clock)
        monitor._restore(data)
        return monitor

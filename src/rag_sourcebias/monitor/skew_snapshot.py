"""State and alarms of one set of labels in the types that leave the monitor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.monitor.baselines import CorpusShare, PoolShare, ReferenceWindow
from rag_sourcebias.monitor.label_sets import OTHER
from rag_sourcebias.monitor.label_watch import LabelWatch, RaisedAt
from rag_sourcebias.monitor.sequential.beta_mixture import beta_interval
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.monitor import Alarm, GroupShare, MonitorSnapshot

__all__ = ["alarm_of", "snapshot_of"]

_WHAT = {"exposure": "exposure", "first": "first ranks"}


def _interval(n: int, total: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    # A uniform mixing distribution: no baseline is favoured, and shares near 0 are no worse.
    if not n:
        nothing = np.full(len(total), np.nan)
        return nothing, nothing
    return beta_interval(float(n), total, a=1.0, b=1.0, confidence_level=level)


def _name(watch: LabelWatch, column: int) -> tuple[str, int]:
    """Return group and number of the measure of a column of values."""
    measure, group = divmod(column, watch.groups.width)
    names = watch.groups.names
    return (names[group] if group < len(names) else OTHER), measure


def _baselines(watch: LabelWatch) -> dict[int, float]:
    """Return the baseline of each tested column of values."""
    kind, totals = watch.settings.baseline, watch.totals
    columns = watch.tests.columns.tolist()
    if isinstance(kind, CorpusShare):
        return {c: kind.shares[_name(watch, c)[0]] for c in columns}
    if isinstance(kind, PoolShare) and totals.n:
        return {c: float(totals.null[c] / totals.n) for c in columns}
    if watch.tests.reference is not None:
        return dict(zip(columns, watch.tests.reference.tolist(), strict=True))
    return {}


def _words(watch: LabelWatch) -> str:
    baseline = watch.settings.baseline
    if baseline is None:
        return "no baseline"
    if isinstance(baseline, ReferenceWindow) and watch.tests.rules is None:
        return f"{baseline.words}, of which there are {len(watch.tests.window)} yet"
    return baseline.words


def _tested(watch: LabelWatch) -> int:
    """Return the observations after a reference window; all of them without any baseline."""
    if watch.settings.baseline is None:
        return watch.totals.n
    return 0 if watch.tests.rules is None else watch.tests.rules.test.n


def snapshot_of(
    watch: LabelWatch, labels: Mapping[str, str], dropped: Mapping[str, int]
) -> MonitorSnapshot:
    """Return what is known of a set of labels at this moment.

    Groups are those seen, and those with a baseline.
    """
    settings, totals, rules = watch.settings, watch.totals, watch.tests.rules
    n, width = totals.n, watch.groups.width
    lower, upper = _interval(n, totals.total, settings.confidence_level)
    baselines = _baselines(watch)
    test_of = {column: i for i, column in enumerate(watch.tests.columns.tolist())}
    shares = []
    for column in range(len(totals.total)):
        group, measure = _name(watch, column)
        known = isinstance(settings.baseline, CorpusShare) and column in baselines
        if not (known or totals.documents[column % width] or group in (settings.groups or ())):
            continue
        test = None if rules is None else test_of.get(column)
        share = GroupShare(
            group=group,
            measure=settings.measures[measure],
            share=float(totals.total[column] / n) if n else float("nan"),
            lower=float(lower[column]),
            upper=float(upper[column]),
            baseline=baselines.get(column),
            evidence=0.0 if rules is None or test is None else float(rules.test.log_e[test]),
            alarm=rules is not None and test is not None and bool(rules.test.alarms[test]),
        )
        shares.append((measure, group, share))
    return MonitorSnapshot(
        labels=dict(labels),
        by=settings.by,
        n_retrievals=totals.n_retrievals,
        n_documents=totals.n_documents,
        n_empty=totals.n_empty,
        n_observations=_tested(watch),
        groups=tuple(share for _, _, share in sorted(shares, key=lambda found: found[:2])),
        baseline=_words(watch),
        dropped=dict(dropped),
        counts=totals.by_rank(watch.groups.names),
        corrected=_corrected(watch, [share for _, _, share in shares]),
    )


def _corrected(watch: LabelWatch, shares: Sequence[GroupShare]) -> dict[str, float]:
    """Return shares of exposure corrected for errors of the tags, of all groups."""
    errors = watch.settings.tag_errors
    found = {g.group: g.share for g in shares if g.measure == "exposure"}
    # A group that came after the cap is counted as "other": its share is not known.
    unknown = set(() if errors is None else errors.groups) - set(watch.groups.names)
    if errors is None or not watch.totals.n or (unknown and found.get(OTHER)):
        return {}
    return dict(sorted(errors.correct(found).items()))


def alarm_of(watch: LabelWatch, labels: Mapping[str, str], found: RaisedAt) -> Alarm:
    """Return an alarm for people and sinks."""
    raised = found.raised
    column = int(watch.tests.columns[raised.column])
    group, measure = _name(watch, column)
    lower, upper = _interval(found.n, found.total[[column]], watch.settings.confidence_level)
    share, baseline = float(found.total[column] / found.n), raised.level
    if baseline is None and found.null is not None:
        baseline = float(found.null[column] / found.n)
    elif baseline is None:
        baseline = _baselines(watch).get(column, math.nan)
    what = f"{_WHAT[watch.settings.measures[measure]]} of {group or 'untagged documents'}"
    where = ", ".join(f"{key} {value}" for key, value in labels.items()) or "all retrievals"
    happened = "changed" if raised.rule == "change" else "left its baseline"
    before = "baseline" if raised.level is None else "level since the change before"
    return Alarm(
        rule=raised.rule,
        labels=dict(labels),
        by=watch.settings.by,
        group=group,
        measure=watch.settings.measures[measure],
        n=found.n,
        share=share,
        lower=float(lower[0]),
        upper=float(upper[0]),
        baseline=baseline,
        evidence=raised.evidence,
        at=found.at,
        message=(
            f"{where}: share of {what} {happened} ({before} {baseline:.3f}) "
            f"at observation {found.n}; {share:.3f} on average since the start"
        ),
    )

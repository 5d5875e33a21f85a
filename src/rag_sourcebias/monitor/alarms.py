"""State and alarms of one set of labels, in the types that leave the monitor, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.monitor.cusum import LEARN, SlotCusum
from rag_sourcebias.monitor.data import (
    OTHER,
    Alarm,
    GroupShare,
    MonitorSnapshot,
    Move,
    ShiftPart,
    WatchState,
)
from rag_sourcebias.monitor.labels import LabelWatch, RaisedAt, largest_part
from rag_sourcebias.monitor.settings import CorpusShare, ReferenceWindow

_WHAT = {"exposure": "exposure", "first": "first ranks"}


def _words(watch: LabelWatch) -> str:
    baseline = watch.settings.baseline
    if baseline is None or watch.cusum is None:
        return "no baseline"
    if not isinstance(baseline, ReferenceWindow):
        return baseline.words
    if watch.cusum.settled:
        return "the share before, at the same time of day and week"
    return "the share of the first two weeks, which are not over yet"


class _Shares:
    """Shares, intervals, baselines and alarms of every column of a set of labels."""

    def __init__(self, watch: LabelWatch) -> None:
        totals = watch.totals
        n = max(totals.n, 1)
        self.mean = totals.total / n
        # Until half-days say more, documents of a retrieval are taken to be all alike.
        self.deviation = np.sqrt(self.mean * (1 - self.mean))
        self.baseline, self.baseline_error = np.full((2, len(self.mean)), np.nan)
        self.statistic, self.alarm = np.zeros((2, len(self.mean)))
        cusum = watch.cusum
        if cusum is not None and totals.n:
            n = self._of_half_days(watch, cusum)
        reach = normal_quantile(0.5 + watch.settings.confidence_level / 2)
        self.lower = np.maximum(self.mean - reach * self.deviation / np.sqrt(n), 0.0)
        self.upper = np.minimum(self.mean + reach * self.deviation / np.sqrt(n), 1.0)
        self.baseline_reach = reach * self.baseline_error

    def _of_half_days(self, watch: LabelWatch, cusum: SlotCusum) -> int:
        """Take what half-days say; return over how many retrievals."""
        columns = watch.columns
        extra = watch.known_levels
        if (level := cusum.since_change()) is not None:
            self.mean[columns] = np.clip(level + extra, 0, 1)
        deviation = np.sqrt(cusum.variance)
        known = cusum.learnt & (deviation > 0)
        self.deviation[columns[known]] = deviation[known]
        usual, error = cusum.usual_now()
        told = cusum.learnt | cusum.known
        self.baseline[columns[told]] = np.clip(usual + extra, 0, 1)[told]
        self.baseline_error[columns[told]] = error[told]
        self.statistic[columns] = cusum.statistic
        self.alarm[columns] = cusum.away
        return watch.totals.n if cusum.n_level is None else cusum.n_level


def snapshot_of(
    watch: LabelWatch, labels: Mapping[str, str], dropped: Mapping[str, int]
) -> MonitorSnapshot:
    """Return what is known of a set of labels at this moment.

    Groups are those seen, and those with a baseline. One without documents has share 0.
    """
    settings, totals, width = watch.settings, watch.totals, watch.groups.width
    found = _Shares(watch)
    shares = []
    named = settings.baseline.shares if isinstance(settings.baseline, CorpusShare) else {}
    for column in range(len(totals.total)):
        group, measure = watch.name_of(column)
        wanted = group in named or group in (settings.groups or ())
        if not (wanted or totals.documents[column % width]):
            continue
        baseline, reach = float(found.baseline[column]), float(found.baseline_reach[column])
        tested = not np.isnan(baseline)
        past = tested and reach > 0
        share = GroupShare(
            group=group,
            measure=settings.measures[measure],
            share=float(found.mean[column]) if totals.n else float("nan"),
            lower=float(found.lower[column]) if totals.n else float("nan"),
            upper=float(found.upper[column]) if totals.n else float("nan"),
            baseline=baseline if tested else None,
            statistic=float(found.statistic[column]),
            alarm=bool(found.alarm[column]),
            baseline_lower=max(baseline - reach, 0.0) if past else None,
            baseline_upper=min(baseline + reach, 1.0) if past else None,
            spread=float(found.deviation[column]) if tested else None,
        )
        shares.append((measure, group, share))
    columns = {name: i for i, name in enumerate(watch.groups.names)}
    return MonitorSnapshot(
        labels=dict(labels),
        by=settings.by,
        n_retrievals=totals.n_retrievals,
        n_documents=totals.n_documents,
        n_empty=totals.n_empty,
        n_observations=totals.n,
        groups=tuple(share for _, _, share in sorted(shares, key=lambda one: one[:2])),
        baseline=_words(watch),
        dropped=dict(dropped),
        counts=totals.by_rank(watch.groups.names),
        corrected=_corrected(watch, [share for _, _, share in shares]),
        watch=_watch_state(watch.cusum),
        odd=dict(watch.odd),
        unseen=tuple(
            name
            for name, share in named.items()
            if share and totals.n and not totals.documents[columns.get(name, -1)]
        ),
    )


def _watch_state(cusum: SlotCusum | None) -> WatchState | None:
    if cusum is None:
        return None
    left = 0 if cusum.settled else max(LEARN - cusum.seen, 1)
    return WatchState(half_days=cusum.seen, left_to_learn=left, n_level=cusum.n_level)


def _corrected(watch: LabelWatch, shares: Sequence[GroupShare]) -> dict[str, float]:
    """Return shares of exposure corrected for errors of the tags, of all groups."""
    errors = watch.settings.tag_errors
    found = {g.group: g.share for g in shares if g.measure == "exposure"}
    # A group that came after the cap is counted as "other": its share is not known.
    unknown = set(() if errors is None else errors.groups) - set(watch.groups.names)
    if errors is None or not watch.totals.n or (unknown and found.get(OTHER)):
        return {}
    return dict(sorted(errors.correct(found).items()))


def _where(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in labels.items()) or "all retrievals"


# An alarm in words.


_MOST_MOVES = 10


def alarm_of(watch: LabelWatch, labels: Mapping[str, str], found: RaisedAt) -> Alarm:
    """Return an alarm for people and sinks."""
    change = found.change
    settings = watch.settings
    reach = normal_quantile(0.5 + settings.confidence_level / 2)
    extra = watch.known_levels
    before, now = (np.clip(extra + level, 0, 1).tolist() for level in (change.before, change.now))
    order = watch.ordered(change)
    names = {i: watch.name_of(int(watch.columns[i])) for i in order}
    lead = order[0]
    group, measure = names[lead]
    error, error_before = (
        reach * float(errors[lead]) for errors in (change.error, change.error_before)
    )
    rule = watch.came_or_went(change, lead) or change.kind
    if watch.is_untagged(change) and rule != "resolved":
        rule = "untagged"
    elif largest_part(found.parts) == "index":
        rule = "composition"
    made = Alarm(
        rule=rule,
        labels=dict(labels),
        by=settings.by,
        group=group,
        measure=settings.measures[measure],
        n=found.n,
        share=now[lead],
        lower=max(now[lead] - error, 0.0),
        upper=min(now[lead] + error, 1.0),
        baseline=before[lead],
        statistic=change.statistic,
        at=change.at,
        message="",
        baseline_lower=max(before[lead] - error_before, 0.0) if error_before else None,
        baseline_upper=min(before[lead] + error_before, 1.0) if error_before else None,
        since=change.since,
        n_since=change.n,
        moves=tuple(
            Move(
                group=names[i][0],
                measure=settings.measures[names[i][1]],
                baseline=before[i],
                share=now[i],
            )
            for i in order[:_MOST_MOVES]
        ),
        parts=found.parts,
        next_step=_next_step(rule, found.parts),
    )
    return replace(made, message=_sentences(made))


_DEPLOYED = "look at what was deployed (encoder, reranker, settings)"
_NEXT = {
    "index": "the store's shares changed: look at what was added or deleted",
    "asked": "the mix of topics changed: look at who asks, and split by that label",
    "ranking": f"ranking changed: {_DEPLOYED}",
}
_NEXT_OF_RULE = {
    "resolved": "",
    "level": "a difference is no bias by itself: audit the retriever before acting on it",
    "untagged": "tag the documents that came in, or look at what no longer passes their tags on",
}


def _next_step(rule: str, parts: Sequence[ShiftPart]) -> str:
    if rule in _NEXT_OF_RULE:
        return _NEXT_OF_RULE[rule]
    largest = largest_part(parts)
    if largest == "ranking" and not any(part.of == "index" for part in parts):
        largest = None  # it holds what the store does, too
    if largest is not None:
        return _NEXT[largest]
    return "look at what was added to the store and what was deployed at that time"


_PART_WORDS = {"index": "what the store holds", "asked": "what is asked", "ranking": "ranking"}
_REST = {"ranking": "ranking or what the store holds"}


def _sentences(alarm: Alarm) -> str:
    others = [
        f"{_WHAT[m.measure]} of {m.group or 'untagged documents'} {m.baseline:.3f} → {m.share:.3f}"
        for m in alarm.moves[1:4]
    ]
    also = f"; with it {', '.join(others)}" if others else ""
    told = f"{_where(alarm.labels)}: {_what_happened(alarm)}"
    if alarm.rule == "resolved":
        return told
    words = _PART_WORDS
    if not any(part.of == "index" for part in alarm.parts):
        words = _PART_WORDS | _REST
    parts = [
        f"{words[p.of]} {100 * p.change:+.1f} [{100 * p.lower:+.1f}, {100 * p.upper:+.1f}]"
        for p in alarm.parts
    ]
    split = f" Points: {', '.join(parts)}." if len(parts) > 1 else ""
    return f"{told}, over {alarm.n_since:,} retrievals{also}.{split} Next: {alarm.next_step}."


def _what_happened(alarm: Alarm) -> str:
    """Say what moved, from where to where and since when; or how far apart two levels are."""
    what = f"{_WHAT[alarm.measure]} of {alarm.group or 'untagged documents'}"
    interval = f"{alarm.share:.3f} [{alarm.lower:.3f}, {alarm.upper:.3f}]"
    before = f"{alarm.baseline:.3f}"
    ends = (alarm.baseline_lower, alarm.baseline_upper)
    if ends[0] is not None and ends[1] is not None:
        before += f" [{ends[0]:.3f}, {ends[1]:.3f}]"
    began = alarm.at if alarm.since is None else alarm.since
    since = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M UTC")
    way = "up" if alarm.share > alarm.baseline else "down"
    if alarm.rule == "level":
        return f"{what} is {interval} since {since}, where its known share is {before}"
    if alarm.rule == "resolved":
        return f"{what} is back at {interval} since {since}; before it was {before}"
    if alarm.rule == "new":
        return f"{what} is new: {interval} since {since}"
    if alarm.rule == "gone":
        return f"{what} is gone since {since}; before it was {before}"
    cause = " with what the store holds" if alarm.rule == "composition" else ""
    return f"{what} went {way}{cause} to {interval} from {before} since {since}"

"""State and alarms of one set of labels, in the types that leave the monitor, and in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.monitor.cusum import LEARN
from rag_sourcebias.monitor.data import (
    MEASURES,
    Alarm,
    GroupCount,
    GroupShare,
    Measure,
    MonitorSnapshot,
    Move,
    ShiftPart,
    WatchState,
)
from rag_sourcebias.monitor.labels import LabelWatch, RaisedAt, largest_part
from rag_sourcebias.monitor.settings import ReferenceWindow
from rag_sourcebias.observe.labels import OTHER

WHAT = {"exposure": "exposure", "first": "first ranks"}


def _words(watch: LabelWatch) -> str:
    baseline = watch.settings.baseline
    if baseline is None or watch.cusum is None:
        return "no baseline"
    if not isinstance(baseline, ReferenceWindow):
        return baseline.words
    if watch.cusum.settled:
        return "the share before, at the same time of day and week"
    return "the share of the first two weeks, which are not over yet"


def _ends(level: float, reach: float) -> tuple[float, float]:
    return max(level - reach, 0.0), min(level + reach, 1.0)


def _levels(watch: LabelWatch) -> tuple[int, list[list[float]]]:
    """Return how many retrievals shares are over, and six numbers of each column.

    Share, deviation of one retrieval, baseline and its error (NaN without one), how far a change
    is told, and whether it is.
    """
    totals, cusum = watch.totals, watch.cusum
    n = totals.n
    level = totals.total / n if n else np.full(len(totals.total), np.nan)
    # Until half-days say more, documents of a retrieval are taken to be all alike.
    spread = np.sqrt(level * (1 - level))
    baseline, past = np.full((2, len(level)), np.nan)
    statistic, away = np.zeros((2, len(level)))
    if cusum is not None and n:
        columns = watch.columns
        if (since := cusum.since_change()) is not None:
            level[columns] = np.clip(since + watch.known_levels, 0, 1)
            level[np.tile(totals.documents == 0, len(MEASURES))] = 0
            n = cusum.n_level or n
        deviation = np.sqrt(cusum.variance)
        learnt = cusum.learnt & (deviation > 0)
        spread[columns[learnt]] = deviation[learnt]
        usual, error = cusum.usual_now()
        told = cusum.learnt | cusum.known
        baseline[columns[told]] = np.clip(usual + watch.known_levels, 0, 1)[told]
        past[columns[told]] = error[told]
        statistic[columns] = cusum.statistic
        away[columns] = cusum.away
    return n, np.stack([level, spread, baseline, past, statistic, away], axis=1).tolist()


def _group_share(
    group: str, measure: Measure, row: list[float], n: int, reach: float
) -> GroupShare:
    share, deviation, usual, error, told, apart = row
    lower, upper = _ends(share, reach * deviation / math.sqrt(max(n, 1)))
    tested = not math.isnan(usual)
    usual_ends = _ends(usual, reach * error) if error > 0 else (None, None)
    return GroupShare(
        group=group,
        measure=measure,
        share=share,
        lower=lower,
        upper=upper,
        baseline=usual if tested else None,
        statistic=told,
        alarm=apart > 0,
        baseline_lower=usual_ends[0],
        baseline_upper=usual_ends[1],
        spread=deviation if tested else None,
    )


def snapshot_of(watch: LabelWatch, labels: Mapping[str, str], **counted: Any) -> MonitorSnapshot:  # noqa: ANN401
    """Return what is known of a set of labels at this moment, with what a monitor counted.

    Groups are those seen, and those with a baseline. One without documents has share 0.
    """
    settings, totals = watch.settings, watch.totals
    n, rows = _levels(watch)
    width = watch.groups.width
    reach = normal_quantile(0.5 + settings.confidence_level / 2)
    names = [*watch.groups.names, OTHER]
    seen = {names[i] for i in np.flatnonzero(totals.documents[[*range(len(names) - 1), -1]])}
    named = settings.told_apart or ()
    groups = [
        _group_share(group, measure, rows[number * width + watch.groups[group]], n, reach)
        for number, measure in enumerate(MEASURES)
        for group in sorted(seen | set(named))
    ]
    cusum = watch.cusum
    state = None
    if cusum is not None:
        left = 0 if cusum.settled else max(LEARN - cusum.seen, 1)
        state = WatchState(half_days=cusum.seen, left_to_learn=left, n_level=cusum.n_level)
    return MonitorSnapshot(
        labels=dict(labels),
        by=settings.by,
        n_retrievals=totals.n_retrievals,
        n_documents=totals.n_documents,
        n_empty=totals.n_empty,
        n_observations=totals.n,
        groups=tuple(groups),
        baseline=_words(watch),
        counts=tuple(
            GroupCount(
                group=name,
                documents=int(totals.documents[watch.groups[name]]),
                ranks=tuple(totals.ranks[watch.groups[name]].tolist()),
            )
            for name in sorted(seen)
        ),
        corrected=_corrected(watch, groups),
        watch=state,
        odd=dict(watch.odd),
        unseen=tuple(
            name
            for name in named
            if totals.n and name not in seen and watch.corpus_share[watch.groups[name]]
        ),
        **counted,
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


def _where(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in labels.items()) or "all retrievals"


# An alarm in words.


_MOST_MOVES = 10


def alarm_of(watch: LabelWatch, labels: Mapping[str, str], found: RaisedAt) -> Alarm:
    """Return an alarm for people and sinks."""
    change = found.change
    reach = normal_quantile(0.5 + watch.settings.confidence_level / 2)
    before, now = (
        np.clip(watch.known_levels + level, 0, 1).tolist() for level in (change.before, change.now)
    )
    moves = []
    for column in watch.ordered(change):
        group, measure = watch.name_of(int(watch.columns[column]))
        moves.append(
            Move(
                group=group,
                measure=MEASURES[measure],
                baseline=before[column],
                share=now[column],
            )
        )
    lead = watch.ordered(change)[0]
    rule = watch.came_or_went(change, lead) or change.kind
    if watch.is_untagged(change) and rule != "resolved":
        rule = "untagged"
    elif largest_part(found.parts) == "index":
        rule = "composition"
    lower, upper = _ends(now[lead], reach * float(change.error[lead]))
    error = reach * float(change.error_before[lead])
    ends = _ends(before[lead], error) if error else (None, None)
    made = Alarm(
        rule=rule,
        labels=dict(labels),
        by=watch.settings.by,
        group=moves[0].group,
        measure=moves[0].measure,
        n=found.n,
        share=now[lead],
        lower=lower,
        upper=upper,
        baseline=before[lead],
        statistic=change.statistic,
        at=change.at,
        message="",
        baseline_lower=ends[0],
        baseline_upper=ends[1],
        since=change.since,
        n_since=change.n,
        moves=tuple(moves[:_MOST_MOVES]),
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
        f"{WHAT[m.measure]} of {m.group or 'untagged documents'} {m.baseline:.3f} → {m.share:.3f}"
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
    what = f"{WHAT[alarm.measure]} of {alarm.group or 'untagged documents'}"
    interval = f"{alarm.share:.3f} [{alarm.lower:.3f}, {alarm.upper:.3f}]"
    before = f"{alarm.baseline:.3f}"
    if alarm.baseline_lower is not None:
        before += f" [{alarm.baseline_lower:.3f}, {alarm.baseline_upper:.3f}]"
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

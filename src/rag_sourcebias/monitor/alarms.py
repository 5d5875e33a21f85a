"""State and alarms of one set of labels, in the types that leave the monitor, and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from rag_sourcebias.monitor.blocks import DAY, WEEK
from rag_sourcebias.monitor.data import (
    OTHER,
    Alarm,
    BlockState,
    GroupShare,
    MonitorSnapshot,
    Move,
    ShiftPart,
)
from rag_sourcebias.monitor.labels import LabelWatch, RaisedAt, largest_part
from rag_sourcebias.monitor.settings import (
    CorpusShare,
    PoolShare,
    ReferenceWindow,
)

_WHAT = {"exposure": "exposure", "first": "first ranks"}


def _baselines(watch: LabelWatch) -> dict[int, float]:
    """Return the baseline of each tested column of values."""
    kind = watch.settings.baseline
    totals = watch.totals
    columns = watch.columns.tolist()
    if isinstance(kind, CorpusShare):
        return {c: kind.shares[watch.name_of(c)[0]] for c in columns}
    if isinstance(kind, PoolShare) and totals.n:
        return {c: float(totals.null[c] / totals.n) for c in columns}
    return {}


def _words(watch: LabelWatch) -> str:
    baseline = watch.settings.baseline
    blocks = watch.blocks
    if baseline is None or blocks is None:
        return "no baseline"
    if isinstance(baseline, ReferenceWindow):
        if blocks.levels() is None or watch.totals.n <= baseline.n:
            return f"the share so far, from {baseline.n:,} retrievals on, of {watch.totals.n:,} yet"
        return (
            "the share before, at the same time of day"
            if blocks.watched >= WEEK
            else ("the share before")
        )
    return baseline.words


class _Shares:
    """Shares, intervals, baselines, evidence and alarms of every column of a set of labels."""

    def __init__(self, watch: LabelWatch) -> None:
        totals = watch.totals
        n = watch.totals.n
        self.baselines = _baselines(watch)
        self.mean = totals.total / n if n else np.full(len(totals.total), np.nan)
        self.evidence, self.alarm = np.zeros((2, len(self.mean)))
        self.ends: dict[int, tuple[float, float]] = {}
        self.spread: dict[int, float] = {}
        columns = watch.columns
        self.lower, self.upper = np.full((2, len(self.mean)), np.nan)
        if not n:
            return
        self.lower[:], self.upper[:] = 0.0, 1.0
        if watch.blocks is None:
            return
        levels = watch.blocks.levels()
        self.evidence[columns] = watch.blocks.log_e
        if levels is None:
            return
        away = watch.blocks.away
        known = np.array([self.baselines.get(c, 0.0) for c in columns.tolist()])
        base, now = ([np.clip(known + part, 0, 1) for part in level[:3]] for level in levels)
        self.spread = dict(zip(columns.tolist(), levels[0].spread.tolist(), strict=True))
        for i, column in enumerate(columns.tolist()):
            if watch.blocks.n_level is not None or watch.blocks.by_user:
                self.mean[column] = now[0][i]
            reach = max(now[2][i] - now[0][i], now[0][i] - now[1][i])
            self.lower[column] = max(self.mean[column] - reach, 0.0)
            self.upper[column] = min(self.mean[column] + reach, 1.0)
            past = not watch.blocks.known and watch.totals.n > watch.blocks.learn
            if past or watch.blocks.settled:
                self.baselines[column] = float(base[0][i])
                self.ends[column] = float(base[1][i]), float(base[2][i])
        if away is not None:
            self.alarm[columns[list(away)]] = 1


def snapshot_of(
    watch: LabelWatch, labels: Mapping[str, str], dropped: Mapping[str, int]
) -> MonitorSnapshot:
    """Return what is known of a set of labels at this moment.

    Groups are those seen, and those with a baseline.
    """
    settings, totals, width = watch.settings, watch.totals, watch.groups.width
    found = _Shares(watch)
    shares = []
    corpus = isinstance(settings.baseline, CorpusShare)
    for column in range(len(totals.total)):
        group, measure = watch.name_of(column)
        known = corpus and column in found.baselines
        if not (known or totals.documents[column % width] or group in (settings.groups or ())):
            continue
        ends = found.ends.get(column, (None, None))
        share = GroupShare(
            group=group,
            measure=settings.measures[measure],
            share=float(found.mean[column]),
            lower=float(found.lower[column]),
            upper=float(found.upper[column]),
            baseline=found.baselines.get(column),
            evidence=float(found.evidence[column]),
            alarm=bool(found.alarm[column]),
            baseline_lower=ends[0],
            baseline_upper=ends[1],
            spread=found.spread.get(column),
        )
        shares.append((measure, group, share))
    named = settings.baseline.shares if isinstance(settings.baseline, CorpusShare) else {}
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
        block=_block_state(watch),
        odd=dict(watch.odd),
        unseen=tuple(
            name
            for name, share in named.items()
            if share and totals.n and not totals.documents[columns.get(name, -1)]
        ),
    )


def _block_state(watch: LabelWatch) -> BlockState | None:
    blocks = watch.blocks
    if blocks is None:
        return None
    n, retrievals, seconds = blocks.extent()
    return BlockState(
        n=n,
        retrievals=retrievals,
        seconds=seconds,
        days=blocks.watched / DAY,
        n_level=blocks.n_level,
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
    shift = found.shift
    columns = watch.columns.tolist()
    settings = watch.settings
    baselines = _baselines(watch)
    known = np.array([baselines.get(c, 0.0) for c in columns])
    base, level = (
        [np.clip(known + part, 0.0, 1.0).tolist() for part in given[:3]]
        for given in (shift.base, shift.level)
    )
    moves = [
        Move(
            group=watch.name_of(columns[i])[0],
            measure=settings.measures[watch.name_of(columns[i])[1]],
            baseline=base[0][i],
            share=level[0][i],
        )
        for i in watch.ordered(shift)[:_MOST_MOVES]
    ]
    lead = watch.ordered(shift)[0]
    group, measure = watch.name_of(columns[lead])
    parts = found.parts
    if largest_part(parts) == "index":
        rule = "composition"
    else:
        rule = "shift" if shift.kind == "page" else shift.kind
    made = Alarm(
        rule=rule,
        labels=dict(labels),
        by=settings.by,
        group=group,
        measure=settings.measures[measure],
        n=found.n,
        share=level[0][lead],
        lower=level[1][lead],
        upper=level[2][lead],
        baseline=base[0][lead],
        evidence=shift.evidence,
        at=shift.at,
        message="",
        baseline_lower=base[1][lead] if base[1][lead] < base[2][lead] else None,
        baseline_upper=base[2][lead] if base[1][lead] < base[2][lead] else None,
        since=shift.since,
        n_since=shift.n,
        moves=tuple(moves),
        parts=parts,
        next_step=_next_step(rule, parts),
    )
    return replace(made, message=_sentences(made))


_DEPLOYED = "look at what was deployed (encoder, reranker, settings)"
_NEXT = {
    "index": "the store's shares changed: look at what was added or deleted",
    "asked": "the mix of topics changed: look at who asks, and split by that label",
    "ranking": f"ranking changed: {_DEPLOYED}",
}


def _next_step(rule: str, parts: Sequence[ShiftPart]) -> str:
    if rule == "resolved":
        return ""
    largest = largest_part(parts)
    if largest == "ranking" and not any(part.of == "index" for part in parts):
        largest = None  # it holds what the store does, too
    if largest is not None:
        return _NEXT[largest]
    return "look at what was added to the store and what was deployed at that time"


_PART_WORDS = {"index": "what the store holds", "asked": "what is asked", "ranking": "ranking"}
_REST = {"ranking": "ranking or what the store holds"}
_CAUSE = {"composition": " with what the store holds"}


def _sentences(alarm: Alarm) -> str:
    what = f"{_WHAT[alarm.measure]} of {alarm.group or 'untagged documents'}"
    way = "up" if alarm.share > alarm.baseline else "down"
    interval = f"{alarm.share:.3f} [{alarm.lower:.3f}, {alarm.upper:.3f}]"
    ends = (alarm.baseline_lower, alarm.baseline_upper)
    before = f"{alarm.baseline:.3f}"
    if ends[0] is not None and ends[1] is not None:
        before += f" [{ends[0]:.3f}, {ends[1]:.3f}]"
    since = datetime.fromtimestamp(alarm.since or alarm.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if alarm.rule == "resolved":
        return (
            f"{_where(alarm.labels)}: {what} is back at {interval} since {since}; baseline {before}"
        )
    others = [
        f"{_WHAT[m.measure]} of {m.group or 'untagged documents'} {m.baseline:.3f} → {m.share:.3f}"
        for m in alarm.moves[1:4]
    ]
    also = f"; with it {', '.join(others)}" if others else ""
    of = {part.of for part in alarm.parts}
    words = _PART_WORDS | ({} if "index" in of else _REST)
    parts = [
        f"{words[p.of]} {100 * p.change:+.1f} [{100 * p.lower:+.1f}, {100 * p.upper:+.1f}]"
        for p in alarm.parts
    ]
    split = f" Points: {', '.join(parts)}." if len(parts) > 1 else ""
    sure = f"evidence {_odds(alarm.evidence)} to 1"
    if alarm.rule == "notice":
        sure += ", a notice: these days of the week were not seen before"
    return (
        f"{_where(alarm.labels)}: {what} went {way}{_CAUSE.get(alarm.rule, '')} to {interval} "
        f"from {before} since {since}, "
        f"over {alarm.n_since:,} retrievals ({sure}){also}.{split} Next: {alarm.next_step}."
    )


def _odds(evidence: float) -> str:
    return f"{math.exp(evidence):,.0f}" if evidence < math.log(1e6) else "over 1,000,000"

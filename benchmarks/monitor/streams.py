"""How often does the monitor page somebody for nothing, and how soon does it tell a change?

    python benchmarks/monitor/streams.py [--streams N] [--output FILE]

Seven kinds of traffic, six weeks of about 200 retrievals of ten documents a day, each through
the public ``SkewMonitor`` by ``replay``'s columns: how many have a page by any rule though nothing
changed, in how many a change of human text after three weeks is told by the end, and the median of
days that takes (of all streams; none where half do not tell it). Writes
benchmarks/results/streams.json. A bar fails where an exact binomial test rejects it at .001: exit
status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from rag_sourcebias.core.codec import environment
from rag_sourcebias.monitor import ReferenceWindow, SkewMonitor
from rag_sourcebias.observe.log.schema import EventColumns

RESULTS = Path(__file__).resolve().parent.parent / "results"
A_DAY, DAYS, DEPTH, DAY = 200, 42, 10, 86_400.0
START = 1_789_948_800.0  # a Monday, at midnight UTC
CHANGED = 21.0  # days until the share moves
TAGS = (("human", None), ("llm:a", None), (None, None))
REJECT = 0.001


class Traffic(NamedTuple):
    """Days since the start, chances of human text, and who asks where a label says it."""

    at: np.ndarray
    human: np.ndarray
    user: np.ndarray | None = None


# Worlds: 200 retrievals a day, of which half the documents are human on average.


def _even(rng) -> np.ndarray:
    return np.sort(rng.random(rng.poisson(A_DAY * DAYS))) * DAYS


def _weekend(at: np.ndarray) -> np.ndarray:
    return (at % 7) >= 5


def independent(rng) -> Traffic:
    at = _even(rng)
    return Traffic(at, np.full(len(at), 0.5))


def office_hours(rng) -> Traffic:
    """85 % from 8 to 18, few at weekends; 8 points more by day, 10 less at weekends."""
    n = 4 * A_DAY * DAYS
    day = rng.integers(0, DAYS, n)
    day = day[rng.random(n) < np.where(_weekend(day), 0.05, 0.32)]
    by_day = rng.random(len(day)) < 0.85
    hour = np.where(by_day, 8 + 10 * rng.random(len(day)), 24 * rng.random(len(day)))
    at = np.sort(day + hour / 24)
    hour = at % 1 * 24
    return Traffic(at, 0.5 + 0.08 * ((hour > 8) & (hour < 18)) - 0.10 * _weekend(at))


def sessions(rng) -> Traffic:
    """Log-normal sessions, 9 retrievals on average, each with a taste; labelled."""
    at = _even(rng)
    size = np.maximum(1, rng.lognormal(1.8, 0.9, len(at)).astype(int))
    session = np.repeat(np.arange(len(at)), size)[: len(at)]
    return Traffic(at, rng.beta(3, 3, len(at))[session], session)


def named_bots(rng) -> Traffic:
    """Three bots with a taste that ask a third of what is asked, in a third of the half-days."""
    at = _even(rng)
    bot = rng.integers(0, 3, len(at))
    active = rng.random((3, 2 * DAYS)) < 0.3
    asks = (rng.random(len(at)) < 0.3) & active[bot, (2 * at).astype(int)]
    human = np.where(asks, rng.beta(2, 2, 3)[bot], 0.5)
    return Traffic(at, human, np.where(asks, bot, 3 + np.arange(len(at))))


def stable_users(rng) -> Traffic:
    """Sixty users with a taste each; how much one asks has a heavy tail (Pareto 1.2)."""
    at = _even(rng)
    weights = rng.pareto(1.2, 60) + 0.2
    user = rng.choice(60, len(at), p=weights / weights.sum())
    return Traffic(at, rng.beta(4, 4, 60)[user], user)


def passing_users(rng) -> Traffic:
    """Five users at a time, who come and go; how much one asks has a heavy tail (Pareto 1.5)."""
    at = _even(rng)
    left = np.minimum(3 * (rng.pareto(1.5, len(at)) + 1), 2_000).astype(int)
    user, sitting, new = np.empty(len(at), int), list(range(5)), 5
    for i, place in enumerate(rng.integers(0, 5, len(at)).tolist()):
        user[i] = sitting[place]
        left[user[i]] -= 1
        if left[user[i]] <= 0:
            sitting[place], new = new, new + 1
    return Traffic(at, rng.beta(2, 2, len(at))[user], user)


def wandering_mix(rng) -> Traffic:
    """The mix of what is asked wanders: AR(1) over half-days, φ = .8, 4 points; unlabelled."""
    at = _even(rng)
    level = rng.standard_normal(2 * DAYS + 1)
    for i in range(1, len(level)):
        level[i] = 0.8 * level[i - 1] + 0.6 * level[i]
    return Traffic(at, 0.5 + 0.04 * level[(2 * at).astype(int)])


WORLDS = {
    "independent": (independent, 0.05),
    "office hours": (office_hours, 0.05),
    "sessions, labelled": (sessions, 0.05),
    "named bots": (named_bots, 0.05),
    "stable heavy users": (stable_users, 0.05),
    "users that come and go": (passing_users, 0.20),
    "wandering mix": (wandering_mix, 0.30),
}
FOUND = {-0.05: 0.90, -0.10: 0.95}
BARRED = ("independent", "office hours", "named bots", "stable heavy users")
DAYS_AT_MOST = {-0.05: 5.0, -0.10: 2.5}


def columns(rng, one: Traffic, *, shift: float = 0.0, untagged: float = 0.0) -> EventColumns:
    """Return a stream as a log holds it; after three weeks human text moves, or tags are lost."""
    n = len(one.at)
    later = one.at >= CHANGED
    chance = np.clip(one.human + shift * later, 0, 1)
    codes = (rng.random((n, DEPTH)) >= chance[:, None]).astype(np.uint8)
    codes[rng.random((n, DEPTH)) < (0.02 + untagged * later)[:, None] * (untagged > 0)] = 2
    users = [None] * n if one.user is None else [str(user) for user in one.user.tolist()]
    names = sorted({user for user in users if user is not None})
    place = {user: i for i, user in enumerate(names)}
    labels = tuple({"user": name} for name in names) or ({},)
    return EventColumns(
        numbers=np.arange(n),
        times=START + one.at * DAY,
        label_codes=np.array([0 if user is None else place[user] for user in users], np.uint32),
        labels=labels,
        offsets=np.arange(n + 1) * DEPTH,
        tag_codes=codes.ravel(),
        tags=TAGS,
        query_ids=np.full(n, ""),
        doc_ids=None,
    )


def watched(part: EventColumns) -> SkewMonitor:
    monitor = SkewMonitor(baseline=ReferenceWindow(), labels=(), clock=lambda: 0.0)
    monitor.record_columns(part)
    return monitor


def null_row(world: str, n: int) -> dict:
    """Streams in which nothing changes."""
    make, bar = WORLDS[world]
    rng = np.random.default_rng(20_261_128)
    pages = sum(bool(watched(columns(rng, make(rng))).alarms) for _ in range(n))
    p = float(binomtest(pages, n, bar, alternative="greater").pvalue)
    return {"world": world, "streams": n, "pages": pages / n, "bar": bar, "met": p >= REJECT}


def shift_row(world: str, shift: float, n: int) -> dict:
    """Streams in which the share of human text moves after three weeks."""
    make, _ = WORLDS[world]
    rng = np.random.default_rng(20_261_129)
    start, days = START + CHANGED * DAY, []
    for _ in range(n):
        told = [a.at for a in watched(columns(rng, make(rng), shift=shift)).alarms if a.at > start]
        days.append((told[0] - start) / DAY if told else np.inf)
    found = int(np.isfinite(days).sum())
    row = {"world": world, "points": round(100 * shift), "streams": n, "found": found / n}
    middle = float(np.median(days))
    row["median_days"] = middle if np.isfinite(middle) else None
    if world in BARRED and shift in FOUND:
        p = float(binomtest(found, n, FOUND[shift], alternative="less").pvalue)
        row["met"] = p >= REJECT and middle <= DAYS_AT_MOST[shift]
    return row


def untagged_row(n: int) -> dict:
    """Streams in which 2 % of the documents have no tag, and 30 % after three weeks."""
    rng = np.random.default_rng(20_261_130)
    told = blamed = 0
    for _ in range(n):
        rules = [a.rule for a in watched(columns(rng, independent(rng), untagged=0.28)).alarms]
        told += "untagged" in rules
        blamed += bool({"shift", "new", "gone"} & set(rules))
    return {"streams": n, "told": told / n, "blamed": blamed / n}


def main() -> int:
    parser = argparse.ArgumentParser(description="Pages for nothing, and days until a change.")
    parser.add_argument("--streams", type=int, default=600, help="of each kind (600)")
    parser.add_argument("--output", type=Path, default=RESULTS / "streams.json")
    options = parser.parse_args()
    n, started = options.streams, time.perf_counter()
    found: dict = {"without a change": [], "changes": [], "untagged": untagged_row(n)}
    for world in WORLDS:
        found["without a change"].append(null_row(world, n))
        found["changes"] += [shift_row(world, shift, n) for shift in (-0.05, -0.10, -0.20)]
        print(found["without a change"][-1], *found["changes"][-3:], sep="\n", file=sys.stderr)
    seconds = round(time.perf_counter() - started, 1)
    found["settings"] = environment() | {"a day": A_DAY, "days": DAYS, "seconds": seconds}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    options.output.write_text(text + "\n", encoding="utf-8")
    rows = [*found["without a change"], *found["changes"]]
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

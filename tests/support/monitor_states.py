"""Snapshots and alarms as a monitor would give them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag_sourcebias.monitor.data import Alarm, GroupCount, GroupShare, MonitorSnapshot

DOCS = {"collection": "docs"}


def share(group: str, value: float, **changes: Any) -> GroupShare:
    made = GroupShare(
        group=group, measure="exposure", share=value, lower=value - 0.05, upper=value + 0.05
    )
    return replace(made, **changes)


def snapshot(n: int = 100, *, labels: Mapping[str, str] = DOCS, **changes: Any) -> MonitorSnapshot:
    made = MonitorSnapshot(
        labels=labels,
        by="source",
        n_retrievals=n,
        n_documents=10 * n,
        n_empty=n // 10,
        n_observations=n,
        groups=(
            share("", 0.125),
            share("human", 0.25, baseline=0.5, statistic=9.0, alarm=True),
            share("llm:gpt", 0.625, baseline=0.5),
            share("human", 0.375, measure="first", baseline=0.5),
        ),
        baseline="share of the corpus",
        dropped={"queue is full": 3},
        counts=(
            GroupCount(group="", documents=n, ranks=(0, 0, 0, n, n, n, n, n)),
            GroupCount(
                group="human", documents=2 * n, ranks=(n // 2, n, *5 * (3 * n // 2,), 2 * n)
            ),
        ),
        corrected={"human": 0.3125, "llm:gpt": 0.6875},
        overflowed={"session": 4},
        bad_tags=5,
    )
    return replace(made, **changes)


def alarm(**changes: Any) -> Alarm:
    made = Alarm(
        rule="shift",
        labels=DOCS,
        by="source",
        group="human",
        measure="exposure",
        n=812,
        share=0.25,
        lower=0.2,
        upper=0.3,
        baseline=0.5,
        statistic=9.0,
        at=1_790_000_000.0,
        message="The share of human left its baseline.",
    )
    return replace(made, **changes)

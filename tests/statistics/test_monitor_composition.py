"""A store that grows under simulated traffic: told as that, and a change of ranking as that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor import CorpusShare, ReferenceWindow, SkewMonitor
from rag_sourcebias.monitor.data import CanaryPoint
from rag_sourcebias.observe.events import RetrievalEvent

pytestmark = pytest.mark.slow
HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:a")
DAY, N, CUT = 86_400.0, 4_000, 2_600
WORLDS = 25
REJECT = 0.001


def rounds(rng: np.random.Generator, moved: float, until: float) -> list[CanaryPoint]:
    """Canary queries every hour, whose Relative Δ moves with the shift."""
    times = np.arange(1, until / 3_600) / 24
    return [
        CanaryPoint(
            at=at * DAY, measure="NDCG@5", human="human", llm="llm:a", labels={}, round_n=20,
            round_relative_delta=rng.normal(-5 + moved * (at > CUT / N * 14), 4), n=20,
            relative_delta=0.0, lower=-200.0, upper=200.0, confidence_level=0.95, reference=0.0,
            alarm=False, failed=0, seconds=1.0,
        )
        for at in times
    ]  # fmt: skip


def traffic(
    seed: int,
    *,
    came: int = 0,
    bonus: Sequence[float] = (0.0, 0.0),
    known: bool = False,
    canary: float | None = None,
    counted: bool = True,
) -> SkewMonitor:
    """Two weeks; a question ranks 150 documents at random, those by the LLM with a bonus."""
    rng, now, holds = np.random.default_rng(seed), [0.0], [np.arange(2_000) < 700]

    def store() -> dict[str, float]:
        share = float(holds[0].mean())
        return {"human": 1 - share, "llm:a": share}

    monitor = SkewMonitor(
        baseline=CorpusShare(store()) if known else ReferenceWindow(1_000),
        groups=("human", "llm:a"),
        labels=(),
        store=store if counted else None,
        canary=None if canary is None else lambda: rounds(rng, canary, now[0]),
        clock=lambda: now[0],
    )
    monitor.look()
    at = np.sort(rng.random(N)) * 14 * DAY
    for start in range(0, N, 50):
        if start == CUT:
            holds[0] = np.concatenate([holds[0], np.ones(came, bool)])
        llm = holds[0][rng.integers(0, len(holds[0]), (50, 150))]
        scores = rng.normal(size=llm.shape) + bonus[start >= CUT] * llm
        top = np.take_along_axis(llm, np.argsort(-scores, axis=1)[:, :10], axis=1)
        now[0] = at[start + 49]
        monitor.record_many(
            (
                RetrievalEvent(
                    ranked=RankedList(query_id="", doc_ids=("",) * 10),
                    tags=tuple(LLM if one else HUMAN for one in row),
                ),
                time,
            )
            for row, time in zip(top.tolist(), at[start : start + 50].tolist(), strict=True)
        )
    return monitor


@pytest.mark.parametrize(
    ("came", "bonus", "known"),
    [(1_500, 0.0, False), (1_500, 0.4, False), (400, 0.0, False), (1_500, 0.0, True)],
)
def test_ingestion_is_told_as_composition(came: int, bonus: float, known: bool) -> None:
    told: Counter[str] = Counter()
    for seed in range(WORLDS):
        monitor = traffic(seed, came=came, bonus=(bonus, bonus), known=known)
        told.update({alarm.rule for alarm in monitor.alarms})
        assert not monitor.dropped.total
    assert binomtest(told["shift"], WORLDS, 0.05, alternative="greater").pvalue >= REJECT
    assert binomtest(told["composition"], WORLDS, 0.95, alternative="less").pvalue >= REJECT


@pytest.mark.parametrize(("came", "bonus"), [(0, 0.4), (0, -0.4), (700, 0.5)])
def test_ranking_is_a_page_whatever_came(came: int, bonus: float) -> None:
    pages = small = 0
    for seed in range(WORLDS):
        alarms = traffic(seed, came=came, bonus=(0.0, bonus)).alarms
        pages += any(alarm.rule == "shift" for alarm in alarms)
        parts = {part.of: part for alarm in alarms[:1] for part in alarm.parts}
        small += bool(parts) and (parts["index"].change == 0) == (came == 0)
    assert binomtest(pages, WORLDS, 0.95, alternative="less").pvalue >= REJECT
    assert small == WORLDS


@pytest.mark.parametrize("moved", [0.0, 25.0])
def test_canary_queries_tell_ranking_without_the_store(moved: float) -> None:
    covered = said = n = 0
    for seed in range(WORLDS):
        found = traffic(seed, bonus=(0.0, -0.25), canary=moved, counted=False).alarms
        for alarm in found[:1]:
            if alarm.canary is None:  # too few rounds since
                continue
            n += 1
            covered += alarm.canary.lower <= moved / 100 <= alarm.canary.upper
            said += "as canary queries say" in alarm.next_step
            assert "Canary queries: Relative Δ" in alarm.message
    assert n > WORLDS / 2
    assert binomtest(covered, n, 0.95, alternative="less").pvalue >= REJECT
    wanted = 0.95 if moved else 0.05
    way = "less" if moved else "greater"
    assert binomtest(said, n, wanted, alternative=way).pvalue >= REJECT

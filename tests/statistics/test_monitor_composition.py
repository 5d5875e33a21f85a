"""A store that grows under simulated traffic: told as that, and a change of ranking as that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.monitor import CorpusShare, ReferenceWindow, SkewMonitor
from rag_sourcebias.observe.log.schema import EventColumns

pytestmark = pytest.mark.slow
DAY, N, CUT, LATER = 86_400.0, 6_000, 3_000, 4_500
DAYS = 40
WORLDS = 6
REJECT = 0.001


def traffic(
    seed: int,
    *,
    came: int = 0,
    bonus: Sequence[float] = (0.0, 0.0),
    later: tuple[int, float] | None = None,
    known: bool = False,
) -> SkewMonitor:
    """Forty days; a question ranks 150 documents at random, those by the LLM with a bonus.

    Documents come in at ``CUT``, and ``later`` more, and with another bonus, at ``LATER``.
    """
    rng, now, holds = np.random.default_rng(seed), [0.0], [np.arange(2_000) < 700]

    def store() -> dict[str, float]:
        share = float(holds[0].mean())
        return {"human": 1 - share, "llm:a": share}

    monitor = SkewMonitor(
        baseline=CorpusShare(store()) if known else ReferenceWindow(1_000),
        labels=(),
        store=store,
        clock=lambda: now[0],
    )
    monitor.look()
    at = np.sort(rng.random(N)) * DAYS * DAY
    last = (0, bonus[1]) if later is None else later
    for start, stop, new, chosen in (
        (0, CUT, 0, bonus[0]),
        (CUT, LATER, came, bonus[1]),
        (LATER, N, *last),
    ):
        holds[0] = np.concatenate([holds[0], np.ones(new, bool)])
        if new:  # as every ten minutes
            monitor.note_index(store(), at=float(at[start]) + 600)
        for part in range(start, stop, 100):
            llm = holds[0][rng.integers(0, len(holds[0]), (100, 150))]
            scores = rng.standard_normal(llm.shape, np.float32) + chosen * llm
            best = np.argpartition(-scores, 10, axis=1)[:, :10]
            best = np.take_along_axis(
                best, np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1), axis=1
            )
            now[0] = at[part + 99]
            monitor.record_columns(
                columns(np.take_along_axis(llm, best, axis=1), at[part : part + 100])
            )
    return monitor


def columns(llm: np.ndarray, at: np.ndarray) -> EventColumns:
    n, depth = llm.shape
    return EventColumns(
        numbers=np.arange(n),
        times=at,
        label_codes=np.zeros(n, np.uint16),
        labels=({},),
        offsets=np.arange(n + 1) * depth,
        tag_codes=llm.astype(np.uint8).ravel(),
        tags=(("human", None), ("llm:a", None)),
        query_ids=np.full(n, ""),
        doc_ids=None,
    )


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


@pytest.mark.parametrize(
    ("bonus", "later", "rules", "known"),
    [
        ((0.0, 0.0), (0, 0.5), ["composition", "shift"], False),  # about 20 points
        ((0.0, 0.0), (0, -0.2), ["composition", "shift"], True),  # a third of the store's part
        ((0.0, -0.4), (1_500, -0.4), ["shift", "composition"], True),
        ((0.0, 0.0), (1_500, 0.0), ["composition", "composition"], False),
    ],
)
def test_after_the_store_changed_shifts_are_told_against_what_it_holds(
    bonus: tuple[float, float], later: tuple[int, float], rules: list[str], known: bool
) -> None:
    """One alarm each, and of the right rule."""
    came = 0 if rules[0] == "shift" else 1_500
    right = pages = 0
    for seed in range(WORLDS):
        alarms = traffic(seed, came=came, bonus=bonus, later=later, known=known).alarms
        right += [alarm.rule for alarm in alarms] == rules
        pages += sum(alarm.rule == "shift" for alarm in alarms) > rules.count("shift")
        for alarm in alarms:
            assert not alarm.lower <= alarm.baseline <= alarm.upper or alarm.rule == "resolved"
    assert binomtest(right, WORLDS, 0.90, alternative="less").pvalue >= REJECT
    assert binomtest(pages, WORLDS, 0.05, alternative="greater").pvalue >= REJECT

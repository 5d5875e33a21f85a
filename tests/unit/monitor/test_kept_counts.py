"""Counts over time that a dashboard keeps: the same as counted anew, whatever came since."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.log.erasing import erase_events
from rag_sourcebias.monitor.log.event_log import EventLog
from rag_sourcebias.monitor.log.reading import KeptCounts, Rollups, read_rollups
from rag_sourcebias.observe.events import RetrievalEvent

START = 1_800_000_000


def assert_same(one: Rollups, other: Rollups) -> None:
    assert one.groups == other.groups
    for name in ("starts", "documents", "first", "exposure", "retrievals", "empty", "kept"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


@pytest.mark.parametrize("erase", [False, True])
def test_kept_counts_are_those_counted_anew(tmp_path: Path, erase: bool) -> None:
    rng, path, kept, now = np.random.default_rng(1), tmp_path / "log.db", KeptCounts(), START
    for number in range(8):
        with EventLog(path) as log:
            for _ in range(200):
                now += int(rng.integers(0, 200))
                source = ("human", "llm:a", f"llm:{number}")[rng.integers(3)]
                ranked = RankedList(query_id="", doc_ids=("a",) * int(rng.integers(3)))
                event = RetrievalEvent(
                    ranked=ranked,
                    tags=(DocTags(source=source),) * len(ranked.doc_ids),
                    labels={"tenant": f"t{rng.integers(4)}"},
                )
                log.record(event, at=now)
        if erase and number == 5:
            erase_events(path, {"tenant": "t1"})
        for _ in range(12):
            ends = np.sort(rng.integers(START - 5_000, now + 5_000, 2)).tolist()
            since, until = (end if rng.random() < 0.6 else None for end in ends)
            step = int(rng.choice([60, 600, 1_200, 7_200, 86_400]))
            labels = {"tenant": "t2"} if rng.random() < 0.3 else None
            asked = {"since": since, "until": until, "labels": labels, "step": step}
            assert_same(read_rollups(path, **asked, kept=kept), read_rollups(path, **asked))
    assert kept

"""The numbers of a shadow comparison: definitions, intervals, bounds, threads."""

from __future__ import annotations

import json
import math
import random
import threading
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.observe.shadow import (
    PairedExposure,
    ShadowComparison,
    ShadowRanking,
    rank_biased_overlap,
)

HUMAN, LLM = DocTags(source="human"), DocTags(source="llm:x")


def ranking(ids: str, tags: str = "", **options: Any) -> ShadowRanking:
    """One letter for each document, and "h" or "l" for each source."""
    known = {"h": HUMAN, "l": LLM, "?": DocTags()}
    return ShadowRanking(doc_ids=tuple(ids), tags=tuple(known[t] for t in tags), **options)


def equation_32(first: list[str], second: list[str], p: float) -> float:
    """RBO_EXT of Webber, Moffat & Zobel (2010) as it is printed."""
    short, long = sorted((first, second), key=len)
    s, size = len(short), len(long)
    x = [len(set(short[:d]) & set(long[:d])) for d in range(1, size + 1)]
    x_s, x_l = x[s - 1], x[size - 1]
    one = sum(x[d - 1] / d * p**d for d in range(1, size + 1))
    two = sum(x_s * (d - s) / (s * d) * p**d for d in range(s + 1, size + 1))
    return (1 - p) / p * (one + two) + ((x_l - x_s) / size + x_s / s) * p**size


def test_rank_biased_overlap_is_equation_32() -> None:
    rng = random.Random(0)
    for _ in range(300):
        letters = "abcdefghijkl"
        first = rng.sample(letters, rng.randint(1, 10))
        second = rng.sample(letters, rng.randint(1, 10))
        p = rng.choice([0.5, 0.9, 0.98])
        found = rank_biased_overlap(first, second, p=p)
        assert found == pytest.approx(equation_32(first, second, p))
        assert found == rank_biased_overlap(second, first, p=p)
        assert 0 <= found <= 1


def test_alike_and_apart_by_hand() -> None:
    assert rank_biased_overlap("abc", "abc", p=0.9) == pytest.approx(1)
    assert rank_biased_overlap("abc", "xyz", p=0.9) == 0
    assert rank_biased_overlap("", "xyz", p=0.9) == 0
    # agreements 0 and 1: .5 · 0 + .25 · 1 + the rest, .25, at the last agreement
    assert rank_biased_overlap("ab", "ba", p=0.5) == pytest.approx(0.5)
    for first, second, shared in (("abcd", "dxya", 0.5), ("ab", "abcd", 0.5), ("", "ab", 0)):
        comparison = ShadowComparison()
        comparison.add(current=ranking(first), candidate=ranking(second))
        assert comparison.summary().overlap == shared


def exposure_by_hand(tags: list[DocTags], source: str) -> float:
    weights = [1 / math.log2(r + 2) for r in range(len(tags))]
    return sum(w for w, t in zip(weights, tags, strict=True) if t.source == source) / sum(weights)


def test_every_number_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(1)
    comparison = ShadowComparison(depth=5, persistence=0.8)
    rows = []
    for _ in range(80):
        lists, tags = [], []
        for tilt in (0.3, 0.6):
            lists.append([str(i) for i in rng.choice(12, size=7, replace=False)])
            tags.append([HUMAN if rng.random() < tilt else LLM for _ in range(7)])
        comparison.add(
            current=ShadowRanking(doc_ids=tuple(lists[0]), tags=tuple(tags[0])),
            candidate=ShadowRanking(doc_ids=tuple(lists[1]), tags=tuple(tags[1])),
        )
        a, b = lists[0][:5], lists[1][:5]
        rows.append(
            (
                len(set(a) & set(b)) / 5,
                equation_32(a, b, 0.8),
                a[0] != b[0],
                exposure_by_hand(tags[0][:5], "human"),
                exposure_by_hand(tags[1][:5], "human"),
            )
        )
    means = np.mean(rows, axis=0)
    found = comparison.summary()
    assert found.overlap == pytest.approx(means[0])
    assert found.rank_biased_overlap == pytest.approx(means[1])
    assert found.first_changed == pytest.approx(means[2])
    human, llm = found.exposure
    assert (human.source, llm.source) == ("human", "llm:x")
    assert (human.current, human.candidate) == pytest.approx(tuple(means[3:]))
    assert human.difference == pytest.approx(means[4] - means[3]) == pytest.approx(-llm.difference)
    differences = np.array([row[4] - row[3] for row in rows])
    wanted = stats.ttest_1samp(differences, 0).confidence_interval()
    assert human.interval is not None
    assert (human.interval.lower, human.interval.upper) == pytest.approx(tuple(wanted))
    assert human.interval.n_labeled == found.n_queries == found.n_exposed == 80
    assert found.note == ""


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Half of the queries put the human document first under the candidate, never now."""
    first = exposure_by_hand([HUMAN, LLM], "human")
    truth = 0.5 * (first - (1 - first))
    rng, covered = random.Random(2), 0
    for _ in range(500):
        paired = PairedExposure()
        for _ in range(50):
            paired.add([LLM, HUMAN], [HUMAN, LLM] if rng.random() < 0.5 else [LLM, HUMAN])
        interval = paired.rows(0.9)[0].interval
        assert interval is not None
        covered += interval.lower <= truth <= interval.upper
    assert 0.86 <= covered / 500 <= 0.94  # .9 ± 3 binomial standard errors


def test_a_source_seen_late_had_no_exposure_before() -> None:
    comparison = ShadowComparison()
    for _ in range(3):
        comparison.add(current=ranking("ab", "hh"), candidate=ranking("ab", "hh"))
    comparison.add(current=ranking("ab", "hh"), candidate=ranking("c", "l"))
    human, llm = comparison.summary().exposure
    assert (llm.current, llm.candidate, llm.n_changed) == (0, 0.25, 1)
    assert (human.current, human.candidate) == (1, 0.75)


def test_without_enough_queries_there_is_no_interval_and_a_reason() -> None:
    comparison = ShadowComparison()
    assert comparison.summary().overlap is None
    assert comparison.summary().exposure == ()
    for _ in range(29):
        comparison.add(current=ranking("ab", "hl"), candidate=ranking("ba", "lh"))
    few = comparison.summary()
    assert few.exposure[0].interval is None
    assert few.note == "Intervals need at least 30 queries with results, there are 29."
    alike = ShadowComparison()
    for _ in range(100):
        alike.add(current=ranking("ab", "hl"), candidate=ranking("ab", "hl"))
    found = alike.summary()
    assert (found.overlap, found.first_changed) == (1, 0)
    assert found.rank_biased_overlap == pytest.approx(1)
    assert "No interval for human, llm:x: it needs at least 15 queries" in found.note
    comparison.add(current=ranking("ab", "hl"), candidate=ranking("ba", "lh"))
    assert comparison.summary().exposure[0].interval is not None


def test_empty_results_and_documents_returned_twice() -> None:
    comparison = ShadowComparison()
    comparison.add(current=ranking(""), candidate=ranking(""))
    assert comparison.summary().overlap is None
    comparison.add(current=ranking("ab"), candidate=ranking(""))
    found = comparison.summary()
    assert (found.n_queries, found.n_empty, found.n_exposed) == (2, 1, 0)
    assert (found.overlap, found.first_changed, found.rank_biased_overlap) == (0, 1, 0)
    twice = ShadowComparison(depth=2)
    twice.add(current=ranking("aab", "hhl"), candidate=ranking("ab", "hl"))
    assert twice.summary().overlap == 1
    assert twice.summary().exposure[0].difference == 0


def test_threads_lose_nothing() -> None:
    comparison = ShadowComparison()

    def work() -> None:
        for _ in range(250):
            comparison.add(
                current=ranking("ab", "hl", seconds=0.001),
                candidate=ranking("ba", "lh", seconds=0.002),
            )
            comparison.skip()
            comparison.summary()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = comparison.summary()
    assert (found.n_queries, found.n_unsampled, found.first_changed) == (2000, 2000, 1)
    assert found.exposure[0].current == pytest.approx(exposure_by_hand([HUMAN, LLM], "human"))
    assert found.exposure[0].n_changed == 2000


def test_memory_is_bounded() -> None:
    comparison = ShadowComparison()
    for i in range(3000):
        source = DocTags(source=f"llm:{i}")
        comparison.add(
            current=ShadowRanking(doc_ids=(f"d{i}", "b"), tags=(source, HUMAN), seconds=i),
            candidate=ShadowRanking(doc_ids=("b",), tags=(HUMAN,), seconds=1.0),
            query_id=f"q{i}",
        )
    found = comparison.summary()
    assert len(found.exposure) <= 101
    assert {"human", "other"} < {row.source for row in found.exposure}
    assert sum(row.current for row in found.exposure) == pytest.approx(1)
    assert sum(row.difference for row in found.exposure) == pytest.approx(0, abs=1e-12)
    assert found.latency_current is not None
    assert (found.latency_current.n, found.latency_current.median) == (1000, 2499.5)
    assert found.latency_current.p95 == 2950
    assert len(found.most_changed) == 20


def test_the_most_changed_queries_come_first_and_once() -> None:
    comparison = ShadowComparison()
    for _ in range(3):
        comparison.add(current=ranking("ab"), candidate=ranking("ab"), query_id="same")
        comparison.add(current=ranking("ab"), candidate=ranking("cd"), query_id="other")
        comparison.add(current=ranking("ab"), candidate=ranking("ba"), query_id="turned")
        comparison.add(current=ranking("ab"), candidate=ranking("ba"))
    names = [name for name, _ in comparison.summary().most_changed]
    assert names == ["other", "turned", "same"]


def test_a_summary_is_plain_json_and_says_what_it_is() -> None:
    comparison = ShadowComparison(depth=2)
    for i in range(40):
        comparison.add(
            current=ranking("ab", "l?", seconds=0.010),
            candidate=ranking("ba" if i % 2 else "ab", "?l" if i % 2 else "l?", seconds=0.020),
        )
    comparison.skip()
    comparison.dropped.add("shadow failed", n=2)
    comparison.dropped.add("queue is full", n=3)
    found = comparison.summary()
    data = json.loads(json.dumps(found.to_dict()))
    assert (data["n_queries"], data["n_failed"], data["n_dropped"]) == (40, 2, 3)
    assert data["exposure"][1]["interval"]["method"] == "paired t"
    text = str(found)
    assert text.startswith("40 queries compared (1 not sampled, 2 failed, 3 dropped). Of the first")
    assert "2 documents 100.0 % are the same" in text
    assert "50.0 % of the queries have another first document" in text
    assert "Unknown source: 38.7 % of the exposure now, 50.0 % with the candidate (+11.3" in text
    assert "95% interval [" in text
    assert "Median time 10 ms against 20 ms" in text
    assert text.endswith("None of this says which ranking is better; that takes judged queries.")
    comparison.reset()
    empty = comparison.summary()
    assert (empty.n_queries, empty.n_failed, empty.n_dropped, empty.exposure) == (0, 0, 0, ())
    assert str(empty).startswith("0 queries compared. None of this")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"persistence": 1.0}, r"persistence 1.0 is outside \(0, 1\)"),
        ({"confidence_level": 95}, r"confidence_level 95 is outside \(0, 1\)"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ShadowComparison(**options)


def test_tags_for_other_documents_are_refused() -> None:
    with pytest.raises(DataError, match="ranking of 2 documents has 1 tags"):
        ranking("ab", "h")
